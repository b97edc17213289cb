/* The cost of the calls that a range of a traced program consists of, on one thread and on several at once. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { kMostThreads = 16 };
enum What { kClock, kStamp, kPushPop, kRange };

typedef int (*Stamp)(uint64_t *);
typedef int (*Push)(int, uint64_t);
typedef int (*Pop)(int, uint64_t *);

struct Work {
  enum What what;
  Stamp stamp;
  Push push;
  Pop pop;
  int kind;
  int count;
  pthread_barrier_t *begin;
  double ns; /* of a turn; negative: the error of a call */
};

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int turn(const struct Work *work, uint64_t id) {
  struct timespec time;
  uint64_t out = 0;
  int result = 0;
  if (work->what == kClock) return clock_gettime(CLOCK_REALTIME, &time);
  if (work->what == kStamp) return work->stamp(&out);
  if (work->what == kRange) result = work->stamp(&out);
  if (result == 0) result = work->push(work->kind, id);
  if (result == 0 && work->what == kRange) result = work->stamp(&out);
  return result == 0 ? work->pop(work->kind, &out) : result;
}

static void *run(void *argument) {
  struct Work *const work = argument;
  pthread_barrier_wait(work->begin);
  const double begin = now_ns();
  int result = 0;
  for (int i = 0; i < work->count && result == 0; ++i) result = turn(work, (uint64_t)i + 1);
  work->ns = result == 0 ? (now_ns() - begin) / work->count : -result;
  return NULL;
}

/* The ns of a turn on the slowest thread, or an error's negative number. */
double call_cost(int what, void *stamp, void *push, void *pop, int kind, int count, int threads) {
  struct Work work[kMostThreads];
  pthread_t ids[kMostThreads];
  pthread_barrier_t begin;
  double slowest = 0;
  pthread_barrier_init(&begin, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    work[i] = (struct Work){(enum What)what, (Stamp)stamp, (Push)push, (Pop)pop, kind, count, &begin, 0};
    pthread_create(&ids[i], NULL, run, &work[i]);
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < threads; ++i) {
    if (work[i].ns < 0) return work[i].ns;
    if (work[i].ns > slowest) slowest = work[i].ns;
  }
  pthread_barrier_destroy(&begin);
  return slowest;
}
