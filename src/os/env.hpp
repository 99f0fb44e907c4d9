// The environment, read-only: strings and whole numbers out of variables.
// Any floor above base/ may include this. It holds no lock: like getenv, it must not race with setenv.
#pragma once
#include <errno.h>
#include <stdlib.h>

#include <cstdint>

namespace weft::os {

// Null when the variable is unset or empty.
inline const char* env(const char* name) {
    const char* v = getenv(name);
    return v && *v ? v : nullptr;
}

// Parses all of `text` as a decimal number within [lo, hi]; writes *out on success only.
inline bool parse_int(const char* text, int64_t lo, int64_t hi, int64_t* out) {
    if (!text || !*text) return false;
    char* end = nullptr;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || *end || v < lo || v > hi) return false;
    *out = v;
    return true;
}

// The variable as a number, `otherwise` when it is unset or no number.
inline int64_t env_int(const char* name, int64_t otherwise) {
    int64_t v;
    return parse_int(env(name), INT64_MIN, INT64_MAX, &v) ? v : otherwise;
}

}  // namespace weft::os
