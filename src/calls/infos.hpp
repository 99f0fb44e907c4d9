// The calls on info objects. For api/, which checks handles; keys and lengths are checked here.
// Each object has a lock of its own, see obj/info. Usable before initialisation and after finalisation.
#pragma once
#include "base/err.hpp"
#include "obj/info.hpp"

namespace weft::calls {

using obj::Info;
using obj::Process;

Err info_create(Process&, Info** out);
Err info_create_env(Process&, int argc, char** argv, Info** out);
Err info_dup(Process&, Info&, Info** out);
Err info_free(Process&, Info** info);
Err info_set(Process&, Info&, const char* key, const char* value);
Err info_delete(Process&, Info&, const char* key);
Err info_get(Process&, Info&, const char* key, int valuelen, char* value, bool* flag);
Err info_get_valuelen(Process&, Info&, const char* key, int* valuelen, bool* flag);
Err info_get_string(Process&, Info&, const char* key, int* buflen, char* value, bool* flag);
Err info_get_nkeys(Process&, Info&, int* n);
Err info_get_nthkey(Process&, Info&, int n, char* key);

}  // namespace weft::calls
