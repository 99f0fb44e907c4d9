/* Stands for libpmix.so.2 and the launcher behind it, for one rank of PMIX_RANK and FAKE_PMIX_SIZE. What FAKE_PMIX_SILENT names
   (a key, or "fence") is never answered; FAKE_PMIX_SLOW seconds pass before the fence is. Answers come from another thread, as
   from the real one. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ok = 0, not_found = -46, is_string = 3, is_uint32 = 14 };
struct proc { char space[256]; uint32_t rank; };
struct value { uint16_t type; union { char* string; uint32_t number; char room[56]; } data; };
typedef void (*done)(int status, void* to);
typedef void (*got)(int status, struct value* value, void* to);
struct answer { int status, wait_s; struct value value; done done; got got; void* to; };

static char published[200];

static void* give(void* given) {
    struct answer* a = given;
    sleep((unsigned)a->wait_s);
    if (a->got) a->got(a->status, a->status == ok ? &a->value : NULL, a->to);
    else a->done(a->status, a->to);
    memset(a, 0xaa, sizeof *a);   /* what was handed over is the callback's no longer */
    free(a);
    return NULL;
}

static int later(struct answer a) {
    pthread_t thread;
    struct answer* copy = malloc(sizeof a);
    if (!copy) return -1;
    *copy = a;
    if (pthread_create(&thread, NULL, give, copy) != 0) return -1;
    pthread_detach(thread);
    return ok;
}

static int number(const char* name) { return getenv(name) ? atoi(getenv(name)) : 0; }
static int silent(const char* what) { return getenv("FAKE_PMIX_SILENT") && strcmp(getenv("FAKE_PMIX_SILENT"), what) == 0; }

int PMIx_Init(struct proc* me, void* info, size_t n) {
    (void)info, (void)n;
    snprintf(me->space, sizeof me->space, "fake");
    me->rank = (uint32_t)number("PMIX_RANK");
    return ok;
}
int PMIx_Finalize(const void* info, size_t n) { return (void)info, (void)n, ok; }
int PMIx_Abort(int status, const char* text, struct proc* procs, size_t n) {
    (void)procs, (void)n;
    fprintf(stderr, "fake launcher: aborted with %d: %s\n", status, text);
    return ok;
}
int PMIx_Put(uint8_t scope, const char* key, struct value* v) {
    (void)scope, (void)key;
    snprintf(published, sizeof published, "%s", v->data.string);
    return ok;
}
int PMIx_Commit(void) { return ok; }
int PMIx_Fence_nb(const struct proc* procs, size_t n, const void* info, size_t infos, done d, void* to) {
    (void)procs, (void)n, (void)info, (void)infos;
    if (silent("fence")) return ok;
    return later((struct answer){ok, number("FAKE_PMIX_SLOW"), {0}, d, NULL, to});
}
int PMIx_Get_nb(const struct proc* whose, const char* key, const void* info, size_t n, got g, void* to) {
    (void)whose, (void)info, (void)n;
    struct answer a = {ok, 0, {.type = is_uint32}, NULL, g, to};
    if (silent(key)) return ok;
    if (strcmp(key, "pmix.job.size") == 0) a.value.data.number = (uint32_t)number("FAKE_PMIX_SIZE");
    else if (strcmp(key, "pmix.appnum") == 0) a.value.data.number = 4;
    else if (strcmp(key, "weft-meeting") == 0 && published[0]) {
        a.value.type = is_string;
        a.value.data.string = published;
    } else a.status = not_found;
    return later(a);
}
