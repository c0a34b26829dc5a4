// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "CLinux.h"

#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>

// MARK: Memory files and pipes

int clinux_memfd(const char *name) { return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); }

int clinux_fill_and_seal(int fd, const void *bytes, size_t count) {
  size_t written = 0;
  while (written < count) {
    // A memory file counts as a file for RLIMIT_FSIZE.
    ssize_t n = clinux_write(fd, (const char *)bytes + written, count - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    written += (size_t)n;
  }
  int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  return lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0 ? -1 : 0;
}

int clinux_seals(int fd) { return fcntl(fd, F_GET_SEALS); }

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

// MARK: Addresses

static socklen_t unix_address(struct sockaddr_un *address, const char *name, size_t count,
                              bool abstract) {
  if (count + (abstract ? 1 : 0) > sizeof address->sun_path) {
    errno = E2BIG;
    return 0;
  }
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path + (abstract ? 1 : 0), name, count);
  // The length counts in an abstract name: sizeof would make it a different one, padded with NULs.
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + count + (abstract ? 1 : 0));
}

int clinux_bind_unix(int socket, const char *name, size_t count, bool abstract) {
  struct sockaddr_un address;
  socklen_t length = unix_address(&address, name, count, abstract);
  if (length == 0) return -1;
  return bind(socket, (struct sockaddr *)&address, length);
}

// MARK: Messages with descriptors

typedef union {
  struct cmsghdr aligned;
  // Descriptors, credentials and a pidfd, which the kernel may add.
  char bytes[CMSG_SPACE(sizeof(int) * CLINUX_DESCRIPTORS_MAX) + CMSG_SPACE(sizeof(struct ucred)) +
             CMSG_SPACE(sizeof(int))];
} control_buffer;

ssize_t clinux_send_descriptors(int socket, const char *name, size_t name_count, bool abstract, const void *bytes,
                                size_t count, const int *descriptors, size_t descriptor_count) {
  struct sockaddr_un address;
  socklen_t length = unix_address(&address, name, name_count, abstract);
  if (length == 0) return -1;
  if (descriptor_count > CLINUX_DESCRIPTORS_MAX) {
    errno = E2BIG;
    return -1;
  }
  control_buffer control;
  memset(&control, 0, sizeof control);
  struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
  struct msghdr message = {.msg_name = &address, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
  if (descriptor_count > 0) {
    size_t size = sizeof(int) * descriptor_count;
    control.aligned = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
    memcpy(CMSG_DATA(&control.aligned), descriptors, size);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(size);
  }
  ssize_t sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t clinux_receive_descriptors(int socket, void *bytes, size_t capacity,
                                   clinux_received *received) {
  control_buffer control;
  memset(&control, 0, sizeof control);
  memset(received, 0, offsetof(clinux_received, descriptors));
  struct iovec part = {.iov_base = bytes, .iov_len = capacity};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control};
  ssize_t length;
  do length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC);
  while (length < 0 && errno == EINTR);
  if (length < 0) return -1;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_RIGHTS) {
      size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (received->descriptor_count < CLINUX_DESCRIPTORS_MAX) {
          received->descriptors[received->descriptor_count++] = fd;
        } else {
          close(fd);
        }
      }
    } else if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
      struct ucred peer;
      memcpy(&peer, CMSG_DATA(c), sizeof peer);
      received->pid = peer.pid;
    }
  }
  return length;
}

// MARK: The process

bool clinux_is_secure(void) { return getauxval(AT_SECURE) != 0; }

char **clinux_environment(void) {
  static char *nothing[] = {NULL};
  return clinux_is_secure() ? nothing : environ;
}

uint64_t clinux_descriptor_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}
