#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace weft {

void assertion_failed(const char* what, const char* file, int line) {
    fprintf(stderr, "weft: %s:%d: this must hold: %s\n", file, line, what);
    abort();
}

}  // namespace weft
