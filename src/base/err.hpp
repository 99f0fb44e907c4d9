// The one error type below the bindings. Any floor may include this; it holds no lock.
// The function that first decides which error it is says why, by fail(); callers only propagate.
#pragma once
#include <cstdint>

namespace weft {

// Numbered as the error classes of the MPI 5.0 ABI, so that the bindings convert by a cast (checked there).
enum class [[nodiscard]] Err : int32_t {
    ok = 0, buffer = 1, count = 2, type = 3, tag = 4, comm = 5, rank = 6, request = 7, root = 8, group = 9, op = 10,
    topology = 11, dims = 12, arg = 13, unknown = 14, truncate = 15, other = 16, intern = 17, pending = 18,
    in_status = 19, info_key = 31, info_nokey = 32, info_value = 33, info = 34, io = 35, keyval = 36, name = 38, no_mem = 39,
    port = 43, service = 51, size = 52, spawn = 53, unsupported = 55, win = 56, proc_aborted = 58, value_too_large = 59, session = 60,
    errhandler = 61, abi = 62,
};

// Records why (for the error handler's message; kept per thread, 200 characters) and returns `e`.
[[gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] Err fail(Err e, const char* why, ...);
// The text of this thread's last fail(), or "" when there was none since the last clear.
const char* fail_text();
void clear_fail_text();

}  // namespace weft

#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WEFT_INLINE __attribute__((always_inline)) inline
// For objects read on hot paths: addressed directly, not through the global offset table.
#define WEFT_HIDDEN __attribute__((visibility("hidden")))
#define WEFT_COLD __attribute__((cold, noinline))
// Propagates an error.
#define WEFT_TRY(expr)                                                      \
    do {                                                                    \
        if (::weft::Err err_ = (expr); WEFT_UNLIKELY(err_ != ::weft::Err::ok)) return err_; \
    } while (0)
