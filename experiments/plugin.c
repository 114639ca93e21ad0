/* plugin.c - see plugin.h.
 *
 * The table holds a copy of each policy whose decide is a guard: it notes whose code is about to run, calls it, and forgets it again.
 * The handler of fatal signals prints that note with write(2) alone, puts the default action back and lets the signal end the
 * process, so that a worker's death is still seen for what it is. It runs on a stack of its own, for a plug-in that recursed away.
 * The note is one a process: simulations run on one thread, and so do the drivers of real stores.
 */
#include "experiments/plugin.h"

#include "experiments/digest.h"
#include "experiments/version.h"
#include "policies/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct guarded_policy {
    ls_policy policy; /* first: an instance points here */
    const ls_policy *original;
    char note[512]; /* what the handler prints */
} guarded_policy;

static guarded_policy guarded[LS_POLICIES_MAX];
static uint32_t guarded_count;
static uint32_t plugin_count;
static char origin[sizeof LS_VERSION + LS_PLUGINS_MAX * 10u] = LS_VERSION;
static const char *volatile running; /* the note of the policy whose code runs, NULL outside */
static unsigned char signal_stack[65536];

static void guarded_decide(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                           ls_commit_decision *decision)
{
    const guarded_policy *policy = (const guarded_policy *)(const void *)((const ls_policy_instance *)parameters)->policy;
    running = policy->note;
    policy->original->decide(parameters, state, random, view, decision);
    running = NULL;
}

static void on_fatal_signal(int number)
{
    const char *note = running;
    if (note != NULL) {
        ssize_t written = write(STDERR_FILENO, note, strlen(note));
        (void)written; /* there is nobody left to tell */
    }
    raise(number); /* SA_RESETHAND has put the default action back; it takes effect when this handler returns */
}

static ls_result watch_signals(ls_error *error)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_handler = on_fatal_signal, .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
    bool set = sigaltstack(&stack, NULL) == 0 && sigemptyset(&action.sa_mask) == 0;
    for (uint32_t i = 0; i < LS_COUNT_OF(fatal) && set; i++) set = sigaction(fatal[i], &action, NULL) == 0;
    return set ? LS_OK : ls_fail(error, LS_ERROR_IO, "plug-ins: cannot watch for signals: %s", strerror(errno));
}

static ls_result add_policy(const char *path, const ls_policy *policy, ls_error *error)
{
    ls_error inner = {""};
    if (guarded_count == LS_POLICIES_MAX) return ls_fail(error, LS_ERROR_INVALID, "%.200s: too many policies", path);
    guarded_policy *mine = &guarded[guarded_count];
    ls_result result = ls_policy_check(policy, &inner);
    if (result == LS_OK) {
        *mine = (guarded_policy){.policy = *policy, .original = policy};
        mine->policy.decide = guarded_decide;
        snprintf(mine->note, sizeof mine->note, "lakestream: the plug-in %.300s crashed or hung in policy '%s'\n", path,
                 policy->name);
        result = ls_policies_add(&mine->policy, &inner);
    }
    if (result != LS_OK) return ls_fail(error, result, "%.200s: %s", path, inner.text);
    guarded_count++;
    return LS_OK;
}

static ls_result check_offer(const char *path, const ls_policy_plugin *offer, ls_error *error)
{
    if (offer->interface != LS_POLICY_INTERFACE) {
        return ls_fail(error, LS_ERROR_VERSION, "%.200s was built for interface %u of policies, this program has %u: build it anew",
                       path, offer->interface, LS_POLICY_INTERFACE);
    }
    if (offer->policy_bytes != sizeof(ls_policy) || offer->view_bytes != sizeof(ls_commit_view) ||
        offer->decision_bytes != sizeof(ls_commit_decision) || offer->state_bytes != LS_POLICY_STATE_BYTES) {
        return ls_fail(error, LS_ERROR_VERSION,
                       "%.200s was built against other headers (policy %u, view %u, decision %u, state %u bytes; expected "
                       "%zu, %zu, %zu, %u): build it anew with those of lakestream " LS_VERSION, path, offer->policy_bytes,
                       offer->view_bytes, offer->decision_bytes, offer->state_bytes, sizeof(ls_policy),
                       sizeof(ls_commit_view), sizeof(ls_commit_decision), LS_POLICY_STATE_BYTES);
    }
    if (offer->policy_count == 0) return ls_fail(error, LS_ERROR_INVALID, "%.200s offers no policy", path);
    return LS_OK;
}

static ls_result digest_file(const char *path, char hex[LS_DIGEST_HEX_BYTES], ls_error *error)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return ls_fail(error, LS_ERROR_IO, "%.200s: %s", path, strerror(errno));
    ls_digest *digest = ls_digest_new();
    unsigned char bytes[16384];
    size_t length;
    while (digest != NULL && (length = fread(bytes, 1, sizeof bytes, file)) > 0) ls_digest_bytes(digest, bytes, length);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (digest == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_result result = ls_digest_finish(digest, hex);
    if (failed) return ls_fail(error, LS_ERROR_IO, "%.200s: cannot be read", path);
    return result == LS_OK ? LS_OK : ls_fail(error, result, "%.200s: no digest", path);
}

ls_result ls_plugin_load(const char *path, ls_error *error)
{
    char hex[LS_DIGEST_HEX_BYTES], local[4096];
    if (plugin_count == LS_PLUGINS_MAX) return ls_fail(error, LS_ERROR_INVALID, "at most %u plug-ins", LS_PLUGINS_MAX);
    int length = snprintf(local, sizeof local, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    if (length < 0 || (size_t)length >= sizeof local) return ls_fail(error, LS_ERROR_INVALID, "%.200s...: path too long", path);
    ls_result result = digest_file(local, hex, error);
    if (result == LS_OK && plugin_count == 0) result = watch_signals(error);
    if (result != LS_OK) return result;
    void *library = dlopen(local, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return ls_fail(error, LS_ERROR_IO, "%.400s", dlerror());
    const ls_policy_plugin *offer = dlsym(library, LS_POLICY_PLUGIN_SYMBOL);
    if (offer == NULL) {
        dlclose(library);
        return ls_fail(error, LS_ERROR_INVALID, "%.200s is no policy plug-in: it does not export %s (end its source with LS_POLICY_PLUGIN)",
                       path, LS_POLICY_PLUGIN_SYMBOL);
    }
    result = check_offer(path, offer, error);
    for (uint32_t i = 0; result == LS_OK && i < offer->policy_count; i++) result = add_policy(path, offer->policies[i], error);
    if (result != LS_OK) return result; /* the object stays loaded: policies of it may be in the table already */
    plugin_count++;
    size_t used = strlen(origin);
    snprintf(origin + used, sizeof origin - used, "+%.8s", hex);
    return LS_OK;
}

const char *ls_plugin_origin(void) { return origin; }
