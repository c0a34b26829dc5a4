#define _GNU_SOURCE
#include "CLinux.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/un.h>

int clinux_journal_socket(int buffer_size) {
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  // The kernel caps it; what is missing then goes in a memory file, so a refusal is no failure.
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_size, sizeof buffer_size);
  return fd;
}

int clinux_journal_send(int socket, const char *path, size_t path_count, const void *bytes,
                        size_t count, int memory_file, bool wait) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (path_count >= sizeof address.sun_path) return ENAMETOOLONG;
  memcpy(address.sun_path, path, path_count);
  union {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
  struct msghdr message = {
      .msg_name = &address,
      .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_count + 1),
  };
  if (memory_file >= 0) {
    control.aligned.cmsg_level = SOL_SOCKET;
    control.aligned.cmsg_type = SCM_RIGHTS;
    control.aligned.cmsg_len = CMSG_LEN(sizeof memory_file);
    memcpy(CMSG_DATA(&control.aligned), &memory_file, sizeof memory_file);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
  } else {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  }
  ssize_t sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno;
  return memory_file >= 0 || (size_t)sent == count ? 0 : EIO;
}

bool clinux_journal_answers(const char *path, size_t path_count) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (path_count >= sizeof address.sun_path) return false;
  memcpy(address.sun_path, path, path_count);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_count + 1);
  bool connected = connect(fd, (struct sockaddr *)&address, length) == 0;
  close(fd);
  return connected;
}

int32_t clinux_thread_id(void) { return (int32_t)syscall(SYS_gettid); }

const char *clinux_program_name(void) { return program_invocation_short_name; }
