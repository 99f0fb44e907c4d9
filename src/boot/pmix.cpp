#include "boot/pmix.hpp"

#include <stdio.h>
#include <string.h>

#include <type_traits>

#include "boot/meeting.hpp"
#include "os/env.hpp"
#include "os/library.hpp"
#include "os/process.hpp"

namespace weft::boot {
namespace {

// What of PMIx's binary interface is used here (the same since version 3): identities, tagged values, six functions.
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
constexpr char key_size[] = "pmix.job.size", key_app[] = "pmix.appnum", key_universe[] = "pmix.univ.size";

struct Functions {
    int (*init)(Proc*, void* info, size_t);
    int (*finalize)(const void* info, size_t);
    int (*abort)(int status, const char* text, Proc* procs, size_t);
    int (*put)(uint8_t scope, const char* key, Value*);
    int (*commit)();
    int (*fence)(const Proc*, size_t, const void* info, size_t);
    int (*get)(const Proc*, const char* key, const void* info, size_t, Value**);
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
               find(&f->put, "PMIx_Put") && find(&f->commit, "PMIx_Commit") && find(&f->fence, "PMIx_Fence") &&
               find(&f->get, "PMIx_Get");
    return all ? Err::ok : fail(Err::other, "libpmix.so.2 lacks a function that Weft needs; use Weft's mpiexec");
}

Err failed(const char* function, int status) {
    return fail(Err::other, "the launcher behind PMIX_NAMESPACE does not answer %s (status %d); use Weft's mpiexec", function, status);
}

// A number that the launcher knows about this process, or about the whole job (any_rank).
Err number_of(const Functions& f, Proc whose, uint32_t rank, const char* key, int* out) {
    whose.rank = rank;
    Value* v = nullptr;
    int status = f.get(&whose, key, nullptr, 0, &v);
    if (status != 0 || !v) return failed(key, status);
    bool number = v->type == type_uint32 || v->type == type_uint || v->type == type_int || v->type == type_int32;
    if (!number || v->int32 < 0) return failed(key, status);
    *out = v->int32;  // `v` is libpmix's, a few bytes once
    return Err::ok;
}

struct Wire {
    const Functions& f;
    Proc me;

    Err publish(char* text) {
        Value v{};
        v.type = type_string;
        v.string = text;
        int status = f.put(scope_global, meeting_key, &v);
        return status == 0 ? Err::ok : failed("PMIx_Put", status);
    }
    Err barrier() {
        int status = f.commit();
        if (status != 0) return failed("PMIx_Commit", status);
        status = f.fence(nullptr, 0, nullptr, 0);
        return status == 0 ? Err::ok : failed("PMIx_Fence", status);
    }
    Err look_up(char* text, size_t bytes) {
        Proc first = me;
        first.rank = 0;
        Value* v = nullptr;
        int status = f.get(&first, meeting_key, nullptr, 0, &v);
        if (status != 0 || !v || v->type != type_string || !v->string) return failed("PMIx_Get", status);
        snprintf(text, bytes, "%s", v->string);
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
    Functions f;
    WEFT_TRY(load(&f));
    Proc me{};
    int status = f.init(&me, nullptr, 0);
    if (status != 0) return failed("PMIx_Init", status);
    int size = 0;
    WEFT_TRY(number_of(f, me, any_rank, key_size, &size));
    if (me.rank >= uint32_t(size)) return failed("with this process's rank", int(me.rank));
    job->launcher = Launcher::pmix;
    job->singleton = false;
    job->rank = job->node_rank = int(me.rank);
    job->size = job->node_size = job->app_size = size;
    if (number_of(f, me, me.rank, key_app, &job->appnum) != Err::ok) job->appnum = -1;
    if (number_of(f, me, any_rank, key_universe, &job->universe_size) != Err::ok || job->universe_size < size)
        job->universe_size = size;
    Wire wire{f, me};
    Err e = meet(job, wire);
    if (e != Err::ok) {
        // As with PMI: the peers would wait for a rank that cannot join, so the job ends here.
        os::say("weft: rank %d: %s", job->rank, fail_text());
        f.abort(1, fail_text(), nullptr, 0);
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
