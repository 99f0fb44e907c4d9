#include "boot/pmix.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <type_traits>

#include "boot/exchange.hpp"
#include "boot/protocol.hpp"
#include "os/clock.hpp"
#include "os/env.hpp"
#include "os/futex.hpp"
#include "os/library.hpp"
#include "os/process.hpp"

namespace weft::boot {
namespace {

// What of PMIx's binary interface is used here (the same since version 3): identities, tagged values, seven functions.
struct Proc {
    char space[256];
    uint32_t rank;
};
constexpr uint32_t any_rank = UINT32_MAX - 1;
enum : uint16_t { type_string = 3, type_int = 6, type_int32 = 9, type_uint = 11, type_uint32 = 14 };
struct Value {
    uint16_t type;
    union {
        char* string;
        int32_t int32;
        uint32_t uint32;
        char room[56];  // more than any of its kinds takes
    };
};
constexpr uint8_t scope_global = 3;
constexpr int done_at_once = -157;  // a success, and nobody will be called back
constexpr char key_size[] = "pmix.job.size", key_app[] = "pmix.appnum", key_universe[] = "pmix.univ.size";

using Done = void(int status, void* answer);
using GotValue = void(int status, Value*, void* answer);

struct Functions {
    int (*init)(Proc*, void* info, size_t);
    int (*finalize)(const void* info, size_t);
    int (*abort)(int status, const char* text, Proc* procs, size_t);
    int (*put)(uint8_t scope, const char* key, Value*);
    int (*commit)();
    // Those that may wait are called in the form that does not: then how long they take is decided here.
    int (*fence)(const Proc*, size_t, const void* info, size_t, Done*, void* answer);
    int (*get)(const Proc*, const char* key, const void* info, size_t, GotValue*, void* answer);
};

Err load(Functions* f) {
    // The launcher's own copy first, where it names it: another version would talk to it, but not without complaints.
    void* library = nullptr;
    const char* prefix = os::env("PMIX_PREFIX");
    static const char* const places[] = {"lib", "lib/openmpi", "lib64"};
    for (const char* place : places) {
        char path[1024];
        if (library || !prefix) break;
        snprintf(path, sizeof path, "%.900s/%s/libpmix.so.2", prefix, place);
        library = os::open_library(path);
    }
    if (!library) library = os::open_library("libpmix.so.2");
    if (!library)
        return fail(Err::other, "started by a PMIx launcher (PMIX_NAMESPACE is set), but there is no libpmix.so.2 to talk to it; "
                    "install it, use Weft's mpiexec, or unset PMIX_NAMESPACE to run alone");
    auto find = [&](auto* function, const char* name) {
        *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(os::find_symbol(library, name));
        return *function != nullptr;
    };
    bool all = find(&f->init, "PMIx_Init") && find(&f->finalize, "PMIx_Finalize") && find(&f->abort, "PMIx_Abort") &&
               find(&f->put, "PMIx_Put") && find(&f->commit, "PMIx_Commit") && find(&f->fence, "PMIx_Fence_nb") &&
               find(&f->get, "PMIx_Get_nb");
    return all ? Err::ok : fail(Err::other, "libpmix.so.2 lacks a function that Weft needs; use Weft's mpiexec");
}

Err failed(const char* function, int status) {
    return fail(Err::other, "the launcher behind PMIX_NAMESPACE does not answer %s (status %d); use Weft's mpiexec", function, status);
}

// What was answered, copied: the value belongs to libpmix.
struct Content {
    int status;
    uint16_t type;
    int32_t number;
    char text[exchange_bytes];
};

// Filled in by libpmix's own thread, which may do so after this one has given up: then the answer is left to it.
struct Answer {
    Content content;
    std::atomic<uint32_t> here;
};

void done(int status, void* to) {
    auto* a = static_cast<Answer*>(to);
    a->content.status = status;
    a->here.store(1, std::memory_order_release);   // pairs with arrives()
    os::futex_wake(a->here);
}

void got_value(int status, Value* v, void* to) {
    Content& c = static_cast<Answer*>(to)->content;
    c.type = v ? v->type : 0;
    if (c.type == type_string && v->string) snprintf(c.text, sizeof c.text, "%s", v->string);
    else if (v) c.number = v->int32;
    done(status == done_at_once ? 0 : status, to);
}

bool arrives(Answer& a, int64_t within_ms) {
    const uint64_t end = os::now_ns() + uint64_t(within_ms) * 1'000'000;
    while (a.here.load(std::memory_order_acquire) == 0) {   // pairs with done()
        if (os::now_ns() >= end) return false;
        os::futex_wait(a.here, 0, 100'000);
    }
    return true;
}

Answer* new_answer() { return static_cast<Answer*>(calloc(1, sizeof(Answer))); }

// The launcher's part of the exchange, and what it knows of the job.
struct Server {
    Functions f;
    Proc me;
    bool silent = false;  // did not answer in time

    Err get(uint32_t rank, const char* key, Content* out) {
        Answer* a = new_answer();
        if (!a) return fail(Err::no_mem, "no memory to ask the launcher for %s", key);
        Proc whose = me;
        whose.rank = rank;
        const int status = f.get(&whose, key, nullptr, 0, got_value, a);
        const bool asked = status == 0 || status == done_at_once;
        if (asked && !arrives(*a, time_limit_ms())) {
            silent = true;
            return fail(Err::other, "the launcher behind PMIX_NAMESPACE gave no answer to PMIx_Get of %s within %lld s (%s sets that time); "
                        "use Weft's mpiexec", key, static_cast<long long>(time_limit_ms() / 1000), env_launcher_timeout);
        }
        *out = a->content;
        free(a);
        if (!asked) return failed(key, status);
        return out->status == 0 ? Err::ok : failed(key, out->status);
    }

    // A number that the launcher knows about this process, or about the whole job (any_rank).
    Err number(uint32_t rank, const char* key, int* out) {
        Content c{};
        WEFT_TRY(get(rank, key, &c));
        const bool is_number = c.type == type_uint32 || c.type == type_uint || c.type == type_int || c.type == type_int32;
        if (!is_number || c.number < 0) return failed(key, 0);
        *out = c.number;
        return Err::ok;
    }

    Err publish(char* text) {
        Value v{};
        v.type = type_string;
        v.string = text;
        int status = f.put(scope_global, exchange_key, &v);
        return status == 0 ? Err::ok : failed("PMIx_Put", status);
    }

    Err barrier() {
        int status = f.commit();
        if (status != 0) return failed("PMIx_Commit", status);
        Answer* a = new_answer();
        if (!a) return fail(Err::no_mem, "no memory to wait for the launcher");
        status = f.fence(nullptr, 0, nullptr, 0, done, a);
        if (status == 0) {
            // It may take as long as the slowest rank; after a while that is said, once.
            if (!arrives(*a, time_limit_ms()))
                os::say("weft: process %d waits in MPI_Init for an answer to PMIx_Fence since %lld s: have all ranks come to MPI_Init?",
                        os::process_id(), static_cast<long long>(time_limit_ms() / 1000));
            while (!arrives(*a, time_limit_ms())) {}
            status = a->content.status;
        }
        free(a);
        return status == 0 || status == done_at_once ? Err::ok : failed("PMIx_Fence", status);
    }

    Err look_up(char* text, size_t bytes) {
        Content c{};
        WEFT_TRY(get(0, exchange_key, &c));
        if (c.type != type_string) return failed("PMIx_Get", 0);
        snprintf(text, bytes, "%s", c.text);
        return Err::ok;
    }
};

}  // namespace

bool under_pmix() { return os::env("PMIX_NAMESPACE") != nullptr; }

// A rank's children inherit PMIX_NAMESPACE too. The first process of a rank takes a local name that ends with it; for
// any other it is taken. -1 then.
static int take_rank(const char* space, const char* rank) {
    char name[100];
    snprintf(name, sizeof name, "weft-pmix-%.64s-%.12s", space, rank);
    return os::listen_abstract(name);
}

Err attach_pmix(Job* job) {
    const char* rank = os::env("PMIX_RANK");
    int mark = take_rank(os::env("PMIX_NAMESPACE"), rank ? rank : "?");
    if (mark < 0) {
        os::say("weft: process %d is a child of rank %s, which has started MPI itself; it runs alone "
                "(MPI_COMM_WORLD has one rank)", os::process_id(), rank ? rank : "?");
        return Err::ok;
    }
    job->link = mark;
    Server server{};
    WEFT_TRY(load(&server.f));
    int status = server.f.init(&server.me, nullptr, 0);
    if (status != 0) return failed("PMIx_Init", status);
    const uint32_t me = server.me.rank;
    int size = 0;
    WEFT_TRY(server.number(any_rank, key_size, &size));
    if (me >= uint32_t(size)) return failed("with this process's rank", int(me));
    job->launcher = Launcher::pmix;
    job->singleton = false;
    job->rank = job->node_rank = int(me);
    job->size = job->node_size = job->app_size = size;
    // Launchers need not know these; but all that they are asked they have to answer.
    if (server.number(me, key_app, &job->appnum) != Err::ok) job->appnum = -1;
    if (!server.silent && (server.number(any_rank, key_universe, &job->universe_size) != Err::ok || job->universe_size < size))
        job->universe_size = size;
    if (server.silent) return Err::other;
    Err e = meet(job, server);
    if (e != Err::ok) {
        // As with PMI: the peers would wait for a rank that cannot join, so the job ends here.
        os::say("weft: rank %d: %s", job->rank, fail_text());
        if (!server.silent) server.f.abort(1, fail_text(), nullptr, 0);   // which waits for an answer, too
        os::exit_now(1);
    }
    return Err::ok;
}

void finalized_pmix() {
    Functions f;
    if (load(&f) == Err::ok) f.finalize(nullptr, 0);
}

void abort_pmix(int code, const char* text) {
    Functions f;
    if (load(&f) == Err::ok) f.abort(code, text ? text : "", nullptr, 0);
}

}  // namespace weft::boot
