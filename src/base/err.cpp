#include "base/err.hpp"

#include <cstdarg>
#include <cstdio>

namespace weft {

// One short text per thread; initial-exec TLS, so reading it needs no call into the loader.
static thread_local char text[200];

Err fail(Err e, const char* why, ...) {
    va_list ap;
    va_start(ap, why);
    vsnprintf(text, sizeof text, why, ap);
    va_end(ap);
    return e;
}

const char* fail_text() { return text; }
void clear_fail_text() { text[0] = 0; }

}  // namespace weft
