#include "CLinux.h"

#include <sys/ioctl.h>

int clinux_terminal_columns(int fd) {
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
