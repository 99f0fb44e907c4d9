// What weft.h declares and no table does.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

#include <cstring>

#include "obj/settings.hpp"

extern "C" const char* weft_version(void) { return WEFT_VERSION; }

extern "C" int weft_setting(int index, const char** name, char* value, const char** origin, const char** what,
                            const char** evidence) {
    using namespace weft::obj;
    if (index < 0 || index >= settings_count) return 0;
    const Setting& row = settings_table[index];
    char text[32];
    const char* from;
    if (describe_setting(index, text, &from) != weft::Err::ok) strcpy(text, "?");
    if (name != nullptr) *name = row.name;
    if (value != nullptr) memcpy(value, text, sizeof text);
    if (origin != nullptr) *origin = from;
    if (what != nullptr) *what = row.what;
    if (evidence != nullptr) *evidence = row.evidence;
    return 1;
}
