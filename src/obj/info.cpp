#include "obj/info.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "boot/boot.hpp"
#include "obj/process.hpp"
#include "obj/registry.hpp"

namespace weft::obj {

namespace {

constexpr int env_id = 0x131;   // MPI_INFO_ENV

// The entry of `key`, or null; the object's lock is held.
InfoEntry* find(Info& i, const char* key) {
    for (InfoEntry* e = i.entries; e != nullptr; e = e->next)
        if (strcmp(e->key, key) == 0) return e;
    return nullptr;
}

void drop(InfoEntry* e) {
    free(e->value);
    free(e);
}

Err check_key(const char* key) {
    if (key[0] == 0) return fail(Err::info_key, "an info key may not be empty");
    if (strlen(key) >= MPI_MAX_INFO_KEY) return fail(Err::info_key, "info key is longer than MPI_MAX_INFO_KEY");
    return Err::ok;
}

// Copies as much as fits, always with a NUL.
void copy_text(char* to, size_t size, const char* from) {
    size_t n = strlen(from);
    if (n >= size) n = size - 1;
    memcpy(to, from, n);
    to[n] = 0;
}

Err make(Process& p, Info** out) {
    Info* i;
    {
        SpinGuard guard(p.pool_lock);
        if ((i = p.free_infos) != nullptr) p.free_infos = i->next;
    }
    if (i == nullptr) i = static_cast<Info*>(calloc(1, sizeof(Info)));
    if (i == nullptr) return fail(Err::no_mem, "no memory for an info object");
    i->entries = nullptr;
    i->id = 0;
    i->kind = Kind::info;
    *out = i;
    return Err::ok;
}

void clear(Info& i) {
    while (InfoEntry* e = i.entries) {
        i.entries = e->next;
        drop(e);
    }
}

// What was asked for at launch, as far as it is known; the same at any time.
Err fill_env(Info& i, const char* command, char** argv, int argc) {
    char told[boot::launch_info_bytes];
    const int bytes = boot::launch_info(told);
    for (const char* s = told; s < told + bytes;) {
        const char* value = s + strlen(s) + 1;
        if (value >= told + bytes) break;
        WEFT_TRY(info_put(i, s, value));
        s = value + strlen(value) + 1;
    }
    if (command == nullptr || argc < 1) return Err::ok;
    WEFT_TRY(info_put(i, "command", command));
    char line[MPI_MAX_INFO_VAL] = "";
    for (int k = 1; k < argc && argv[k] != nullptr; k++) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s", used != 0 ? " " : "", argv[k]);
    }
    return line[0] != 0 ? info_put(i, "argv", line) : Err::ok;
}

}  // namespace

Info* info_env(Process& p) {
    Registry& r = registry(p);
    if (r.env == nullptr) {
        Info* fresh = nullptr;
        if (make(p, &fresh) != Err::ok) return nullptr;
        fresh->id = env_id;
        (void)fill_env(*fresh, nullptr, nullptr, 0);
        SpinGuard guard(r.lock);
        if (r.env == nullptr) r.env = fresh;
    }
    return r.env;
}

bool info_lookup(Info* i, const char* key, char* value, int size) {
    if (i == nullptr) return false;
    SpinGuard guard(i->lock);
    InfoEntry* e = find(*i, key);
    if (e == nullptr) return false;
    copy_text(value, static_cast<size_t>(size), e->value);
    return true;
}

Err info_put(Info& i, const char* key, const char* value) {
    size_t bytes = strlen(key) + 1;
    char* text = strdup(value);
    auto* fresh = static_cast<InfoEntry*>(malloc(sizeof(InfoEntry) + bytes));
    if (text == nullptr || fresh == nullptr) {
        free(text);
        free(fresh);
        return fail(Err::no_mem, "no memory for the value of info key %s", key);
    }
    SpinGuard guard(i.lock);
    if (InfoEntry* e = find(i, key)) {
        free(e->value);
        e->value = text;
        free(fresh);
        return Err::ok;
    }
    memcpy(fresh->key, key, bytes);
    fresh->value = text;
    fresh->next = nullptr;
    InfoEntry** end = &i.entries;
    while (*end != nullptr) end = &(*end)->next;
    *end = fresh;
    return Err::ok;
}

Err info_create(Process& p, Info** out) { return make(p, out); }

Err info_create_env(Process& p, int argc, char** argv, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(make(p, &i));
    if (Err e = fill_env(*i, argv != nullptr ? argv[0] : nullptr, argv, argc); e != Err::ok) {
        (void)info_free(p, &i);
        return e;
    }
    *out = i;
    return Err::ok;
}

Err info_dup(Process& p, Info& from, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(make(p, &i));
    Err e = Err::ok;
    {
        SpinGuard guard(from.lock);
        for (InfoEntry* x = from.entries; x != nullptr && e == Err::ok; x = x->next) e = info_put(*i, x->key, x->value);
    }
    if (e != Err::ok) {
        (void)info_free(p, &i);
        return e;
    }
    *out = i;
    return Err::ok;
}

Err info_free(Process& p, Info** info) {
    Info& i = **info;
    if (i.id == env_id) return fail(Err::info, "MPI_INFO_ENV may not be freed");
    clear(i);
    i.kind = Kind::dead;
    SpinGuard guard(p.pool_lock);
    i.next = p.free_infos;
    p.free_infos = &i;
    *info = nullptr;
    return Err::ok;
}

Err info_set(Process&, Info& i, const char* key, const char* value) {
    WEFT_TRY(check_key(key));
    if (strlen(value) >= MPI_MAX_INFO_VAL) return fail(Err::info_value, "info value is longer than MPI_MAX_INFO_VAL");
    return info_put(i, key, value);
}

Err info_delete(Process&, Info& i, const char* key) {
    WEFT_TRY(check_key(key));
    SpinGuard guard(i.lock);
    for (InfoEntry** link = &i.entries; *link != nullptr; link = &(*link)->next) {
        InfoEntry* e = *link;
        if (strcmp(e->key, key) != 0) continue;
        *link = e->next;
        drop(e);
        return Err::ok;
    }
    return fail(Err::info_nokey, "info key %s is not set", key);
}

Err info_get(Process&, Info& i, const char* key, int valuelen, char* value, bool* flag) {
    WEFT_TRY(check_key(key));
    if (valuelen < 0) return fail(Err::arg, "valuelen %d is negative", valuelen);
    *flag = info_lookup(&i, key, value, valuelen + 1);   // the user's array has room for the NUL besides
    return Err::ok;
}

Err info_get_valuelen(Process&, Info& i, const char* key, int* valuelen, bool* flag) {
    WEFT_TRY(check_key(key));
    SpinGuard guard(i.lock);
    InfoEntry* e = find(i, key);
    if (e != nullptr) *valuelen = static_cast<int>(strlen(e->value));
    *flag = e != nullptr;
    return Err::ok;
}

Err info_get_string(Process&, Info& i, const char* key, int* buflen, char* value, bool* flag) {
    WEFT_TRY(check_key(key));
    if (*buflen < 0) return fail(Err::arg, "buflen %d is negative", *buflen);
    if (*buflen > 0 && value == nullptr) return fail(Err::arg, "value is a null pointer");
    SpinGuard guard(i.lock);
    InfoEntry* e = find(i, key);
    *flag = e != nullptr;
    if (e == nullptr) return Err::ok;
    if (*buflen > 0) copy_text(value, static_cast<size_t>(*buflen), e->value);
    *buflen = static_cast<int>(strlen(e->value)) + 1;
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
    copy_text(key, MPI_MAX_INFO_KEY, e->key);
    return Err::ok;
}

}  // namespace weft::obj
