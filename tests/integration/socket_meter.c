/* Counts the bytes that a process sends and receives over sockets: LD_PRELOAD it, with a path in SOCKET_METER.
 * At exit each process leaves a file PATH.PID that says "SENT RECEIVED\n".
 *
 * A call is counted when its descriptor is a socket, whatever call it is, so no library can go around it
 * short of making system calls of its own. Descriptors passed along count for the bytes they travel with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_llong sent, received;

static int is_socket(int fd) {
  const int saved = errno;
  struct stat status;
  const int socket = fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
  errno = saved;
  return socket;
}

static ssize_t count(atomic_llong *total, int fd, ssize_t bytes) {
  if (bytes > 0 && is_socket(fd)) atomic_fetch_add(total, bytes);
  return bytes;
}

/* The libc function of this name, found on first use. */
#define NEXT(name)                                                           \
  static __typeof__(&name) next;                                             \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *data, size_t size) {
  NEXT(read);
  return count(&received, fd, next(fd, data, size));
}
ssize_t readv(int fd, const struct iovec *parts, int n) {
  NEXT(readv);
  return count(&received, fd, next(fd, parts, n));
}
ssize_t recv(int fd, void *data, size_t size, int flags) {
  NEXT(recv);
  return count(&received, fd, next(fd, data, size, flags));
}
ssize_t recvfrom(int fd, void *data, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *from_size) {
  NEXT(recvfrom);
  return count(&received, fd, next(fd, data, size, flags, from, from_size));
}
ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  NEXT(recvmsg);
  return count(&received, fd, next(fd, message, flags));
}
int recvmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags, struct timespec *timeout) {
  NEXT(recvmmsg);
  const int done = next(fd, messages, n, flags, timeout);
  for (int i = 0; i < done; ++i) count(&received, fd, (ssize_t)messages[i].msg_len);
  return done;
}

ssize_t write(int fd, const void *data, size_t size) {
  NEXT(write);
  return count(&sent, fd, next(fd, data, size));
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
  NEXT(writev);
  return count(&sent, fd, next(fd, parts, n));
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
  NEXT(send);
  return count(&sent, fd, next(fd, data, size, flags));
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_size) {
  NEXT(sendto);
  return count(&sent, fd, next(fd, data, size, flags, to, to_size));
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  NEXT(sendmsg);
  return count(&sent, fd, next(fd, message, flags));
}
int sendmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags) {
  NEXT(sendmmsg);
  const int done = next(fd, messages, n, flags);
  for (int i = 0; i < done; ++i) count(&sent, fd, (ssize_t)messages[i].msg_len);
  return done;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
  NEXT(sendfile);
  return count(&sent, out, next(out, in, offset, size));
}
ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t size, unsigned int flags) {
  NEXT(splice);
  return count(&sent, out, count(&received, in, next(in, in_offset, out, out_offset, size, flags)));
}

/* What fortified programs call instead. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room) { (void)room; return read(fd, data, size); }
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags) {
  (void)room;
  return recv(fd, data, size, flags);
}

__attribute__((destructor)) static void finish(void) {
  const char *path = getenv("SOCKET_METER");
  char name[4096];
  if (!path || snprintf(name, sizeof name, "%s.%d", path, (int)getpid()) >= (int)sizeof name) return;
  FILE *file = fopen(name, "we");
  if (!file) return;
  fprintf(file, "%lld %lld\n", atomic_load(&sent), atomic_load(&received));
  fclose(file);
}
