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

Err make_info(Process&, Info** out);
Err copy_info(Process&, Info&, Info** out);
void free_info(Process&, Info&);

// The value of `key` copied to `value` (at most `size` bytes with its NUL; 0: not at all), its whole length to `length`; or false.
bool info_lookup(Info*, const char* key, char* value, int size, int* length = nullptr);
Err info_put(Info&, const char* key, const char* value);
bool info_remove(Info&, const char* key);   // false: it was not there
// What was asked for at launch, as far as it is known, the same at any time; with a command line that, too.
Err put_launch_info(Info&, int argc, char** argv);

}  // namespace weft::obj
