// Libraries that are looked for at run time, because most machines do without them.
// boot/ and the floors above it may include this; it holds no lock.
#pragma once

namespace weft::os {

void* open_library(const char* name);  // null where there is none; stays loaded
void* find_symbol(void* library, const char* name);
void* find_loaded(const char* name);      // in what the program has loaded already; null where nothing exports it

}  // namespace weft::os
