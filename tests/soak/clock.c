/* A wall clock that can be moved for the processes that are started with this library preloaded; the machine's own stays.

   TAILGATE_SOAK_CLOCK names a file, mapped by all: the number of moves, then for each since when (real nanoseconds) and the
   offset (nanoseconds) that holds from then on. Times that a process reads get the offset; absolute times that it waits for lose
   it again; a file's times get the offset of their moment, as if the file had been written by the moved clock. Monotonic clocks
   are not touched. tests/soak/clock.py writes the file. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MOVES_MAX 16
#define SECOND 1000000000LL
#define ABSOLUTE_S 1000000000LL /* seconds since boot are fewer, seconds since 1970 are more: tells the clock of a deadline */

struct move { int64_t since, offset; };
struct table { volatile int64_t count; struct move moves[MOVES_MAX]; };

static const struct table empty;
static const struct table *moves = &empty;

__attribute__((constructor)) static void map(void) {
  const char *path = getenv("TAILGATE_SOAK_CLOCK");
  int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (descriptor < 0) return;
  void *found = mmap(NULL, sizeof(struct table), PROT_READ, MAP_SHARED, descriptor, 0);
  if (found != MAP_FAILED) moves = found;
  close(descriptor);
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = dlsym(RTLD_NEXT, #name)

/* of one version: some names have an older one, with other arguments */
static void *versioned(const char *name) {
  void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return found ? found : dlsym(RTLD_NEXT, name);
}

static int real_clock(clockid_t clock, struct timespec *t) {
  REAL(clock_gettime);
  return real ? real(clock, t) : (int)syscall(SYS_clock_gettime, clock, t);
}

static int64_t nanos(const struct timespec *t) { return t->tv_sec * SECOND + t->tv_nsec; }

static void set(struct timespec *t, int64_t n) {
  t->tv_sec = n / SECOND;
  t->tv_nsec = n % SECOND;
}

static int64_t offset_at(int64_t real) {
  int64_t offset = 0;
  for (int64_t i = 0; i < moves->count && i < MOVES_MAX && moves->moves[i].since <= real; i++) offset = moves->moves[i].offset;
  return offset;
}

static int64_t offset_now(void) {
  struct timespec t;
  if (moves->count == 0) return 0;
  real_clock(CLOCK_REALTIME, &t);
  return offset_at(nanos(&t));
}

static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

/* ---- what is read */

int clock_gettime(clockid_t clock, struct timespec *t) {
  int found = real_clock(clock, t);
  if (found == 0 && moves->count && is_wall(clock)) set(t, nanos(t) + offset_at(nanos(t)));
  return found;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec *t, int base) {
  return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, t) == 0 ? base : 0;
}

/* ---- what is waited for */

static const struct timespec *kernels(const struct timespec *deadline, struct timespec *mine) {
  if (!deadline || !moves->count || deadline->tv_sec < ABSOLUTE_S) return deadline;
  set(mine, nanos(deadline) - offset_now());
  if (mine->tv_sec < 0) mine->tv_sec = 0;
  if (mine->tv_nsec < 0) mine->tv_nsec = 0;
  return mine;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict deadline) {
  static __typeof__(pthread_cond_timedwait) *real;
  struct timespec mine;
  if (!real) real = versioned("pthread_cond_timedwait");
  return real(c, m, kernels(deadline, &mine));
}

int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t clock, const struct timespec *restrict deadline) {
  struct timespec mine;
  REAL(pthread_cond_clockwait);
  return real(c, m, clock, is_wall(clock) ? kernels(deadline, &mine) : deadline);
}

int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict deadline) {
  struct timespec mine;
  REAL(cnd_timedwait);
  return real(c, m, kernels(deadline, &mine));
}

int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict deadline) {
  struct timespec mine;
  REAL(mtx_timedlock);
  return real(m, kernels(deadline, &mine));
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict deadline) {
  struct timespec mine;
  REAL(pthread_mutex_timedlock);
  return real(m, kernels(deadline, &mine));
}

int sem_timedwait(sem_t *restrict s, const struct timespec *restrict deadline) {
  struct timespec mine;
  REAL(sem_timedwait);
  return real(s, kernels(deadline, &mine));
}

int sem_clockwait(sem_t *restrict s, clockid_t clock, const struct timespec *restrict deadline) {
  struct timespec mine;
  REAL(sem_clockwait);
  return real(s, clock, is_wall(clock) ? kernels(deadline, &mine) : deadline);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *deadline, struct timespec *left) {
  struct timespec mine;
  REAL(clock_nanosleep);
  return real(clock, flags, (flags & TIMER_ABSTIME) && is_wall(clock) ? kernels(deadline, &mine) : deadline, left);
}

/* ---- files */

static void moved(struct timespec *t) { set(t, nanos(t) + offset_at(nanos(t))); }

static int stamped(int found, struct stat *s) {
  if (found == 0 && moves->count) {
    moved(&s->st_atim);
    moved(&s->st_mtim);
    moved(&s->st_ctim);
  }
  return found;
}

int stat(const char *restrict path, struct stat *restrict s) {
  REAL(stat);
  return stamped(real(path, s), s);
}

int lstat(const char *restrict path, struct stat *restrict s) {
  REAL(lstat);
  return stamped(real(path, s), s);
}

int fstat(int descriptor, struct stat *s) {
  REAL(fstat);
  return stamped(real(descriptor, s), s);
}

int fstatat(int folder, const char *restrict path, struct stat *restrict s, int flags) {
  REAL(fstatat);
  return stamped(real(folder, path, s, flags), s);
}

int stat64(const char *restrict path, struct stat64 *restrict s) {
  REAL(stat64);
  return stamped(real(path, s), (struct stat *)s);
}

int lstat64(const char *restrict path, struct stat64 *restrict s) {
  REAL(lstat64);
  return stamped(real(path, s), (struct stat *)s);
}

int fstat64(int descriptor, struct stat64 *s) {
  REAL(fstat64);
  return stamped(real(descriptor, s), (struct stat *)s);
}

int fstatat64(int folder, const char *restrict path, struct stat64 *restrict s, int flags) {
  REAL(fstatat64);
  return stamped(real(folder, path, s, flags), (struct stat *)s);
}

static void movedx(struct statx_timestamp *t) {
  struct timespec full = {t->tv_sec, t->tv_nsec};
  moved(&full);
  t->tv_sec = full.tv_sec;
  t->tv_nsec = full.tv_nsec;
}

int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict s) {
  REAL(statx);
  int found = real(folder, path, flags, mask, s);
  if (found == 0 && moves->count) {
    movedx(&s->stx_atime);
    movedx(&s->stx_mtime);
    movedx(&s->stx_ctime);
    movedx(&s->stx_btime);
  }
  return found;
}
