// Info objects: ordered lists of (key, value) strings. Any floor from obj/ upwards may include this.
// One spin lock per object guards its list; it is a leaf. Usable before initialisation and after finalisation.
#pragma once
#include "base/err.hpp"
#include "base/object.hpp"
#include "os/spin.hpp"

namespace weft::obj {

struct Process;

struct InfoEntry {
    InfoEntry* next;
    char* value;
    char key[];
};

struct Info : Object {
    os::SpinLock lock;
    InfoEntry* entries;   // in the order of their first setting
    Info* next;           // link of the free list
};

// MPI_INFO_ENV: what was asked for at launch; null when there is no memory for it.
Info* info_env(Process&);

// For the library's own use: the value of `key` copied to `value` (at most `size` bytes with its NUL), or false.
bool info_lookup(Info*, const char* key, char* value, int size);
Err info_put(Info&, const char* key, const char* value);

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

}  // namespace weft::obj
