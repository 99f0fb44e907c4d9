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

// Copies as much as fits, always with a NUL.
void copy_text(char* to, size_t size, const char* from) {
    size_t n = strlen(from);
    if (n >= size) n = size - 1;
    memcpy(to, from, n);
    to[n] = 0;
}

void clear(Info& i) {
    while (InfoEntry* e = i.entries) {
        i.entries = e->next;
        drop(e);
    }
}

}  // namespace

Info* info_env(Process& p) {
    Registry& r = registry(p);
    if (r.env == nullptr) {
        Info* fresh = nullptr;
        if (make_info(p, &fresh) != Err::ok) return nullptr;
        fresh->id = number::info_env;
        (void)put_launch_info(*fresh, 0, nullptr);
        SpinGuard guard(r.lock);
        if (r.env == nullptr) r.env = fresh;
    }
    return r.env;
}

bool info_lookup(Info* i, const char* key, char* value, int size, int* length) {
    if (i == nullptr) return false;
    SpinGuard guard(i->lock);
    InfoEntry* e = find(*i, key);
    if (e == nullptr) return false;
    if (size > 0) copy_text(value, static_cast<size_t>(size), e->value);
    if (length != nullptr) *length = static_cast<int>(strlen(e->value));
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

Err make_info(Process& p, Info** out) {
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

Err put_launch_info(Info& i, int argc, char** argv) {
    char told[boot::launch_info_bytes];
    const int bytes = boot::launch_info(told);
    for (const char* s = told; s < told + bytes;) {
        const char* value = s + strlen(s) + 1;
        if (value >= told + bytes) break;
        WEFT_TRY(info_put(i, s, value));
        s = value + strlen(value) + 1;
    }
    if (argv == nullptr || argv[0] == nullptr || argc < 1) return Err::ok;
    WEFT_TRY(info_put(i, "command", argv[0]));
    char line[MPI_MAX_INFO_VAL] = "";
    for (int k = 1; k < argc && argv[k] != nullptr; k++) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s", used != 0 ? " " : "", argv[k]);
    }
    return line[0] != 0 ? info_put(i, "argv", line) : Err::ok;
}

Err copy_info(Process& p, Info& from, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(make_info(p, &i));
    Err e = Err::ok;
    {
        SpinGuard guard(from.lock);
        for (InfoEntry* x = from.entries; x != nullptr && e == Err::ok; x = x->next) e = info_put(*i, x->key, x->value);
    }
    if (e != Err::ok) {
        free_info(p, *i);
        return e;
    }
    *out = i;
    return Err::ok;
}

void free_info(Process& p, Info& i) {
    clear(i);
    i.kind = Kind::dead;
    SpinGuard guard(p.pool_lock);
    i.next = p.free_infos;
    p.free_infos = &i;
}

bool info_remove(Info& i, const char* key) {
    SpinGuard guard(i.lock);
    for (InfoEntry** link = &i.entries; *link != nullptr; link = &(*link)->next) {
        InfoEntry* e = *link;
        if (strcmp(e->key, key) != 0) continue;
        *link = e->next;
        drop(e);
        return true;
    }
    return false;
}

}  // namespace weft::obj
