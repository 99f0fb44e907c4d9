#include "calls/infos.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "handle_numbers.hpp"

namespace weft::calls {

using obj::InfoEntry;

namespace {

Err check_key(const char* key) {
    if (key[0] == 0) return fail(Err::info_key, "an info key may not be empty");
    if (strlen(key) >= MPI_MAX_INFO_KEY) return fail(Err::info_key, "info key is longer than MPI_MAX_INFO_KEY");
    return Err::ok;
}

}  // namespace

Err info_create(Process& p, Info** out) { return obj::make_info(p, out); }
Err info_dup(Process& p, Info& from, Info** out) { return obj::copy_info(p, from, out); }

Err info_create_env(Process& p, int argc, char** argv, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(obj::make_info(p, &i));
    if (Err e = obj::put_launch_info(*i, argc, argv); e != Err::ok) {
        obj::free_info(p, *i);
        return e;
    }
    *out = i;
    return Err::ok;
}

Err info_free(Process& p, Info** info) {
    if ((*info)->id == number::info_env) return fail(Err::info, "MPI_INFO_ENV may not be freed");
    obj::free_info(p, **info);
    *info = nullptr;
    return Err::ok;
}

Err info_set(Process&, Info& i, const char* key, const char* value) {
    WEFT_TRY(check_key(key));
    if (strlen(value) >= MPI_MAX_INFO_VAL) return fail(Err::info_value, "info value is longer than MPI_MAX_INFO_VAL");
    return obj::info_put(i, key, value);
}

Err info_delete(Process&, Info& i, const char* key) {
    WEFT_TRY(check_key(key));
    return obj::info_remove(i, key) ? Err::ok : fail(Err::info_nokey, "info key %s is not set", key);
}

Err info_get(Process&, Info& i, const char* key, int valuelen, char* value, bool* flag) {
    WEFT_TRY(check_key(key));
    if (valuelen < 0) return fail(Err::arg, "valuelen %d is negative", valuelen);
    *flag = obj::info_lookup(&i, key, value, valuelen + 1);   // the user's array has room for the NUL besides
    return Err::ok;
}

Err info_get_valuelen(Process&, Info& i, const char* key, int* valuelen, bool* flag) {
    WEFT_TRY(check_key(key));
    *flag = obj::info_lookup(&i, key, nullptr, 0, valuelen);
    return Err::ok;
}

Err info_get_string(Process&, Info& i, const char* key, int* buflen, char* value, bool* flag) {
    WEFT_TRY(check_key(key));
    if (*buflen < 0) return fail(Err::arg, "buflen %d is negative", *buflen);
    if (*buflen > 0 && value == nullptr) return fail(Err::arg, "value is a null pointer");
    int length = 0;
    *flag = obj::info_lookup(&i, key, value, *buflen, &length);
    if (*flag) *buflen = length + 1;
    return Err::ok;
}

Err info_get_nkeys(Process&, Info& i, int* n) {
    int count = 0;
    SpinGuard guard(i.lock);
    for (InfoEntry* e = i.entries; e != nullptr; e = e->next) count++;
    *n = count;
    return Err::ok;
}

Err info_get_nthkey(Process&, Info& i, int n, char* key) {
    SpinGuard guard(i.lock);
    InfoEntry* e = i.entries;
    for (int k = 0; e != nullptr && k < n; k++) e = e->next;
    if (e == nullptr) return fail(Err::arg, "the info object has no key number %d", n);
    snprintf(key, MPI_MAX_INFO_KEY, "%s", e->key);
    return Err::ok;
}

}  // namespace weft::calls
