/* pool.c - see pool.h. One SOCK_SEQPACKET pair a worker: messages arrive whole or not at all, and the end of a worker
 * shows as the end of its socket. The database handle of the parent is inherited by the fork but never touched there,
 * and a worker leaves by _exit, so no buffer and no lock of the parent is released twice. */
#include "experiments/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct worker {
    pid_t pid; /* 0: not started */
    int socket;
    bool busy;
    ls_job job;
} worker;

struct ls_pool {
    const ls_spec *spec;
    ls_run_function run;
    void *context;
    worker *workers;
    struct pollfd *polled; /* one a worker, and one for wake_fd */
    uint32_t count;
    uint32_t busy;
};

ls_pool *ls_pool_new(const ls_spec *spec, ls_run_function run, void *context, uint32_t workers, ls_error *error)
{
    ls_pool *pool = ls_allocate_array(1, sizeof *pool);
    if (pool == NULL) goto fail;
    *pool = (ls_pool){.spec = spec, .run = run, .context = context, .count = workers};
    pool->workers = ls_allocate_array(workers, sizeof *pool->workers);
    pool->polled = ls_allocate_array((size_t)workers + 1, sizeof *pool->polled);
    if (pool->workers != NULL && pool->polled != NULL) return pool;
    ls_free(pool->workers);
    ls_free(pool->polled);
    ls_free(pool);
fail:
    ls_fail(error, LS_ERROR_MEMORY, "out of memory for %u workers", workers);
    return NULL;
}

/* Waits for the end of a worker and forgets it. */
static int reap(worker *ended)
{
    int status = 0;
    while (waitpid(ended->pid, &status, 0) < 0 && errno == EINTR) continue;
    close(ended->socket);
    ended->pid = 0;
    return status;
}

void ls_pool_free(ls_pool *pool)
{
    if (pool == NULL) return;
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->workers[i].pid == 0) continue;
        kill(pool->workers[i].pid, SIGKILL);
        reap(&pool->workers[i]);
    }
    ls_free(pool->workers);
    ls_free(pool->polled);
    ls_free(pool);
}

uint32_t ls_pool_idle(const ls_pool *pool) { return pool->count - pool->busy; }

uint32_t ls_pool_busy(const ls_pool *pool) { return pool->busy; }

static void run_job(const ls_pool *pool, const ls_job *job, ls_job_result *done)
{
    memset(done, 0, sizeof *done);
    done->job = *job;
    ls_result result = pool->run(pool->context, &pool->spec->points[job->point].scenario, pool->spec->seed,
                                 job->replication, &done->result, &done->error);
    if (result == LS_OK) return;
    done->status = LS_RUN_FAILED;
    if (done->error.text[0] == '\0') ls_fail(&done->error, result, "%s", ls_result_name(result));
}

static ssize_t receive(int socket, void *message, size_t size)
{
    ssize_t length;
    do {
        length = recv(socket, message, size, 0);
    } while (length < 0 && errno == EINTR);
    return length;
}

static ssize_t transmit(int socket, const void *message, size_t size)
{
    ssize_t length;
    do {
        length = send(socket, message, size, MSG_NOSIGNAL);
    } while (length < 0 && errno == EINTR);
    return length;
}

__attribute__((noreturn)) static void work(const ls_pool *pool, int own_socket, pid_t parent)
{
    ls_job job;
    ls_job_result done;
    sigset_t nothing;
    sigemptyset(&nothing);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN); /* a signal to the whole group is the parent's to answer: it ends its workers itself */
    sigprocmask(SIG_SETMASK, &nothing, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0); /* it died before the line above */
    /* A sibling must see the end of its socket when the parent closes it: no copy may stay open here. */
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->workers[i].pid != 0) close(pool->workers[i].socket);
    }
    while (receive(own_socket, &job, sizeof job) == (ssize_t)sizeof job) {
        run_job(pool, &job, &done);
        if (transmit(own_socket, &done, sizeof done) != (ssize_t)sizeof done) break;
    }
    _exit(0);
}

static ls_result start(ls_pool *pool, worker *started, ls_error *error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return ls_fail(error, LS_ERROR_IO, "cannot start a worker: %s; try a smaller -j", strerror(errno));
    }
    fflush(NULL); /* what the parent has buffered must not be written twice */
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        work(pool, pair[1], parent);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return ls_fail(error, LS_ERROR_IO, "cannot start a worker: %s; try a smaller -j", strerror(errno));
    }
    *started = (worker){.pid = pid, .socket = pair[0]};
    return LS_OK;
}

ls_result ls_pool_submit(ls_pool *pool, const ls_job *job, ls_error *error)
{
    worker *idle = pool->workers;
    while (idle->busy) idle++;
    /* A worker that died while idle shows only now; one fresh start is worth a try. */
    for (int attempt = 0; attempt < 2; attempt++) {
        ls_result result = idle->pid == 0 ? start(pool, idle, error) : LS_OK;
        if (result != LS_OK) return result;
        if (transmit(idle->socket, job, sizeof *job) == (ssize_t)sizeof *job) {
            idle->busy = true;
            idle->job = *job;
            pool->busy++;
            return LS_OK;
        }
        kill(idle->pid, SIGKILL);
        reap(idle);
    }
    return ls_fail(error, LS_ERROR_IO, "workers end before they take a job; is memory or the process limit exhausted?");
}

/* The worker is gone: makes the result that it owed. */
static void describe_end(int status, const ls_job *job, ls_job_result *done)
{
    memset(done, 0, sizeof *done);
    done->job = *job;
    done->status = LS_RUN_CRASHED;
    if (WIFSIGNALED(status)) {
        ls_fail(&done->error, LS_ERROR_VIOLATED, "the worker was ended by signal %d (%s)", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    } else {
        ls_fail(&done->error, LS_ERROR_VIOLATED, "the worker ended with exit code %d", WEXITSTATUS(status));
    }
}

static ls_result collect(ls_pool *pool, worker *from, ls_pool_take take, void *context)
{
    ls_job_result done;
    bool whole = receive(from->socket, &done, sizeof done) == (ssize_t)sizeof done;
    bool owed = from->busy;
    if (owed) pool->busy--;
    from->busy = false;
    if (whole) return take(context, &done);
    kill(from->pid, SIGKILL); /* usually dead already */
    int status = reap(from);
    if (!owed) return LS_OK;
    describe_end(status, &from->job, &done);
    return take(context, &done);
}

ls_result ls_pool_wait(ls_pool *pool, int timeout_ms, int wake_fd, bool *woken, ls_pool_take take, void *context,
                       ls_error *error)
{
    /* poll skips negative descriptors. */
    for (uint32_t i = 0; i < pool->count; i++) {
        const worker *one = &pool->workers[i];
        pool->polled[i] = (struct pollfd){.fd = one->pid != 0 && one->busy ? one->socket : -1, .events = POLLIN};
    }
    pool->polled[pool->count] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    *woken = false;
    int ready = poll(pool->polled, (nfds_t)pool->count + 1, timeout_ms);
    if (ready < 0 && errno != EINTR) return ls_fail(error, LS_ERROR_IO, "waiting for workers: %s", strerror(errno));
    if (ready <= 0) return LS_OK;
    *woken = pool->polled[pool->count].revents != 0;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < pool->count && result == LS_OK; i++) {
        if (pool->polled[i].revents != 0) result = collect(pool, &pool->workers[i], take, context);
    }
    return result;
}
