#include "library.hpp"

#include <dlfcn.h>
#include <unistd.h>

namespace weft_cmd {

std::string here() {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) return ".";
    std::string text(path, static_cast<size_t>(length));
    return text.substr(0, text.find_last_of('/'));
}

Library::Library() {
    // The build tree keeps its library in lib/ whatever the installation calls that folder.
    for (const char* folder : {WEFT_TO_LIB, "../lib"}) {
        path_ = here() + "/" + folder + "/libmpi_abi.so.1";
        if (access(path_.c_str(), R_OK) == 0) break;
    }
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) error_ = dlerror();
}

void* Library::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace weft_cmd
