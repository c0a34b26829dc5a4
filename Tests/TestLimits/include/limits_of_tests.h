// Nothing to call: being linked is enough.
#pragma once
