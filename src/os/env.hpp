// The environment, read-only: strings and whole numbers out of variables.
// Any floor above base/ may include this. It holds no lock: like getenv, it must not race with setenv.
// In a program with more rights than its user (setuid, setgid, file capabilities) every variable is unset.
#pragma once
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <cstdint>

namespace weft::os {

// Whether this program runs with more rights than the user who set its environment.
inline bool has_foreign_rights() { return getauxval(AT_SECURE) != 0; }

// What such a program may know of a variable: nothing, because its user could otherwise make it load a library or
// connect to a socket with the program's rights.
inline const char* env_under(bool foreign_rights, const char* name) {
    const char* v = foreign_rights ? nullptr : getenv(name);
    return v && *v ? v : nullptr;
}

// Null when the variable is unset or empty.
inline const char* env(const char* name) { return env_under(has_foreign_rights(), name); }

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
