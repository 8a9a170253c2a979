/*
 * What a process is made to believe, by LD_PRELOAD. No other process on the machine is affected.
 *
 * PLIMSOLL_INTERPOSED_STEPS    "SECONDS:MOVE,...": this long after the start the wall clock moves by MOVE seconds.
 * PLIMSOLL_INTERPOSED_SUSPENDS "SECONDS:LENGTH,...": the same for a suspension of the machine: the boot clock and the wall
 *                              clock leap, the monotonic clock does not.
 * PLIMSOLL_INTERPOSED_STAT     a file that is opened in place of /proc/stat.
 * PLIMSOLL_INTERPOSED_LEAK     bytes of memory that are lost each second.
 * PLIMSOLL_INTERPOSED_FILES    milliseconds after which one descriptor more is lost, again and again.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOVES 16

struct moves {
    int count;
    double at_s[MOVES], by_s[MOVES];
};

static struct moves steps, suspends;
static const char *stat_file;
static struct timespec started;

static int ask(clockid_t clock, struct timespec *time) {
    return (int)syscall(SYS_clock_gettime, clock, time);
}

static void read_moves(const char *name, struct moves *moves) {
    const char *text = getenv(name);
    while (text && *text && moves->count < MOVES) {
        char *end;
        moves->at_s[moves->count] = strtod(text, &end);
        if (*end != ':')
            return;
        moves->by_s[moves->count++] = strtod(end + 1, &end);
        text = *end == ',' ? end + 1 : end;
    }
}

static void *leak(void *unused) {
    const char *bytes = getenv("PLIMSOLL_INTERPOSED_LEAK"), *files = getenv("PLIMSOLL_INTERPOSED_FILES");
    long per_tenth = bytes ? atol(bytes) / 10 : 0, every_ms = files ? atol(files) : 0, passed_ms = 0;
    (void)unused;
    for (;;) {
        struct timespec tenth = {0, 100 * 1000 * 1000};
        nanosleep(&tenth, NULL);
        if (per_tenth > 0) {
            char *lost = malloc((size_t)per_tenth);
            if (lost)
                memset(lost, 1, (size_t)per_tenth);
        }
        passed_ms += 100;
        if (every_ms > 0 && passed_ms >= every_ms) {
            passed_ms = 0;
            (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    ask(CLOCK_MONOTONIC, &started);
    read_moves("PLIMSOLL_INTERPOSED_STEPS", &steps);
    read_moves("PLIMSOLL_INTERPOSED_SUSPENDS", &suspends);
    stat_file = getenv("PLIMSOLL_INTERPOSED_STAT");
    if (getenv("PLIMSOLL_INTERPOSED_LEAK") || getenv("PLIMSOLL_INTERPOSED_FILES")) {
        pthread_t thread;
        pthread_create(&thread, NULL, leak, NULL);
    }
}

static double moved_s(const struct moves *moves, double passed_s) {
    double sum_s = 0;
    for (int i = 0; i < moves->count; i++)
        sum_s += passed_s >= moves->at_s[i] ? moves->by_s[i] : 0;
    return sum_s;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = ask(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME)) {
        struct timespec now;
        ask(CLOCK_MONOTONIC, &now);
        double passed_s = (double)(now.tv_sec - started.tv_sec) + (double)(now.tv_nsec - started.tv_nsec) / 1e9;
        time->tv_sec += (time_t)moved_s(&suspends, passed_s);
        if (clock == CLOCK_REALTIME)
            time->tv_sec += (time_t)moved_s(&steps, passed_s);
    }
    return result;
}

static int open_as_asked(const char *path, int flags, mode_t mode) {
    if (stat_file && strcmp(path, "/proc/stat") == 0)
        path = stat_file;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                                                                                       \
    int name(const char *path, int flags, ...) {                                                                         \
        mode_t mode = 0;                                                                                                 \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                             \
            va_list rest;                                                                                                \
            va_start(rest, flags);                                                                                       \
            mode = va_arg(rest, mode_t);                                                                                 \
            va_end(rest);                                                                                                \
        }                                                                                                                \
        return open_as_asked(path, flags, mode);                                                                         \
    }

OPEN(open)
OPEN(open64)
