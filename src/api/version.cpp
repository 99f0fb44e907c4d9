// What weft.h declares and no table does.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

extern "C" const char* weft_version(void) { return WEFT_VERSION; }
