#include "os/library.hpp"

#include <dlfcn.h>

namespace weft::os {

void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }
void* find_symbol(void* library, const char* name) { return dlsym(library, name); }

void* find_loaded(const char* name) { return dlsym(RTLD_DEFAULT, name); }

}  // namespace weft::os
