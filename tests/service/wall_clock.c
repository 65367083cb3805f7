// An LD_PRELOAD library whose wall clock (CLOCK_REALTIME) is the system's and an offset that a test may change at any time:
// the first eight bytes of the file $WALL_CLOCK_OFFSET, nanoseconds. Monotonic clocks are left alone.
//
// Waits until a time of the wall clock end as the kernel would end them if the clock itself had jumped: early after a jump
// forward, late after one backward. So they are cut into short ones, each with a look at the clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000, slice = 10000000, zero = 0;
static const volatile int64_t* offset = &zero;

__attribute__((constructor)) static void map_offset(void) {
  const char* path = getenv("WALL_CLOCK_OFFSET");
  const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) offset = mapped;
  close(file);
}

static int64_t nanoseconds(const struct timespec* time) { return time->tv_sec * second + time->tv_nsec; }
static struct timespec timespec_of(int64_t ns) {
  return (struct timespec){.tv_sec = ns / second, .tv_nsec = ns % second};
}
static int is_wall_clock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}
// Of the system, not of the test.
static int64_t real_now(void) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  struct timespec now;
  real(CLOCK_REALTIME, &now);
  return nanoseconds(&now);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, time);
  if (result == 0 && is_wall_clock(clock)) *time = timespec_of(nanoseconds(time) + *offset);
  return result;
}

int gettimeofday(struct timeval* time, void* zone) {
  (void)zone;
  const int64_t now = real_now() + *offset;
  *time = (struct timeval){.tv_sec = now / second, .tv_usec = now % second / 1000};
  return 0;
}

time_t time(time_t* result) {
  const time_t now = (real_now() + *offset) / second;
  if (result) *result = now;
  return now;
}

// The system's time at which a wait for `until` is looked at again; 0: it is over.
static int64_t next_look(int64_t until) {
  const int64_t now = real_now(), left = until - (now + *offset);
  return left <= 0 ? 0 : now + (left < slice ? left : slice);
}

static int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  if (!real) *(void**)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  for (;;) {
    const int64_t look = next_look(nanoseconds(until));
    if (look == 0) return ETIMEDOUT;
    const struct timespec soon = timespec_of(look);
    const int result = real(condition, mutex, &soon);
    if (result != ETIMEDOUT) return result;
  }
}

// Which clock a condition has is not told; a time of the monotonic one is that since the machine's start.
static int is_wall_time(const struct timespec* time) { return time->tv_sec > 1000000000; }

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  if (!real) *(void**)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  return is_wall_time(until) ? wait_on(condition, mutex, until) : real(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  if (!is_wall_clock(clock)) return real(condition, mutex, clock, until);
  for (;;) {
    const int64_t look = next_look(nanoseconds(until));
    if (look == 0) return ETIMEDOUT;
    const struct timespec soon = timespec_of(look);
    const int result = real(condition, mutex, clock, &soon);
    if (result != ETIMEDOUT) return result;
  }
}

// Abseil, and so gRPC, waits on futexes for a time of the wall clock.
long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "syscall");
  long given[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; ++i) given[i] = va_arg(arguments, long);
  va_end(arguments);
  const struct timespec* until = (const struct timespec*)given[3];
  const int waits = number == SYS_futex && (given[1] & FUTEX_CLOCK_REALTIME) != 0 &&
                    (given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && until != NULL;
  if (!waits) return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
  for (;;) {
    const int64_t look = next_look(nanoseconds(until));
    if (look == 0) {
      errno = ETIMEDOUT;
      return -1;
    }
    const struct timespec soon = timespec_of(look);
    const long result = real(number, given[0], given[1], given[2], &soon, given[4], given[5]);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
}
