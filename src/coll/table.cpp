// A process's table out of what its user says: a file of rows, and algorithms that are forced.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "coll/area.hpp"
#include "coll/choice.hpp"
#include "obj/process.hpp"
#include "os/env.hpp"
#include "os/process.hpp"

namespace weft::coll {

namespace {

constexpr char table_variable[] = "WEFT_COLL_TABLE", force_variable[] = "WEFT_COLL_FORCE";
constexpr const char* operations[n_operations] = {"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter",
                                                  "reduce_scatter", "scan"};
constexpr const char* algorithms[n_algorithms] = {"lines", "stages", "linear", "binomial", "knomial", "chain", "ring", "doubling", "halving",
                                                  "bruck", "dissemination", "pairwise", "tree"};
constexpr const char* cpus_names[] = {"own", "claiming", "shared", "any"};
constexpr int64_t most_text = 64 * 1024;
constexpr char separators[] = " \t\r";

struct Word {
    const char* at;
    size_t length;
    bool is(const char* name) const { return strlen(name) == length && strncmp(name, at, length) == 0; }
    int shown() const { return static_cast<int>(length < 40 ? length : 40); }
};

// The index of a name among `n`, or -1.
int find(Word w, const char* const* names, int n) {
    for (int i = 0; i < n; i++)
        if (w.is(names[i])) return i;
    return -1;
}

// All names of which `among` has the bit, for a message.
struct List {
    char text[160] = "";
    List(const char* const* names, int n, uint32_t among = ~0u) {
        for (int i = 0; i < n; i++)
            if ((among >> i & 1) != 0) snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text != 0 ? ", " : "", names[i]);
    }
};

// A number, of bytes with K or M behind it; false where the word does not begin with one.
bool take_number(const char*& at, const char* end, int64_t* out) {
    const char* from = at;
    int64_t v = 0;
    for (; at < end && *at >= '0' && *at <= '9' && v < INT64_MAX >> 24; at++) v = v * 10 + (*at - '0');
    if (at == from) return false;
    const int shift = at == end ? 0 : *at == 'K' ? 10 : *at == 'M' ? 20 : 0;
    at += shift != 0;
    *out = v << shift;
    return true;
}

// From-to, from-, or one number; `any` is everything.
bool parse_range(Word w, int64_t* from, int64_t* to) {
    const char *at = w.at, *end = w.at + w.length;
    *from = 0;
    *to = INT64_MAX;
    if (w.is("any")) return true;
    if (!take_number(at, end, from)) return false;
    if (at == end) {
        *to = *from;
        return true;
    }
    if (*at++ != '-') return false;
    return (at == end || take_number(at, end, to)) && at == end && *from <= *to;
}

Err parse_algorithm(const char* origin, int line, Operation o, Word w, uint8_t* out) {
    const int i = find(w, algorithms, n_algorithms);
    const Algorithms has = algorithms_of(o);
    if (i < 0 || (has >> i & 1) == 0)
        return fail(Err::arg, "%s, line %d: %.*s is no algorithm of %s; it has %s", origin, line, w.shown(), w.at, operations[static_cast<int>(o)],
                    List(algorithms, n_algorithms, has).text);
    *out = static_cast<uint8_t>(i);
    return Err::ok;
}

Err parse_operation(const char* origin, int line, Word w, Operation* out) {
    const int i = find(w, operations, n_operations);
    if (i < 0) return fail(Err::arg, "%s, line %d: %.*s is none of the operations %s", origin, line, w.shown(), w.at, List(operations, n_operations).text);
    *out = static_cast<Operation>(i);
    return Err::ok;
}

Err parse_row(const char* origin, int line, const Word (&w)[5], Rule* r) {
    int64_t least, most;
    uint8_t algorithm;
    WEFT_TRY(parse_operation(origin, line, w[0], &r->operation));
    if (!parse_range(w[1], &least, &most) || least > INT32_MAX)
        return fail(Err::arg, "%s, line %d: %.*s is no number of members; allowed are 8, 3-8, 3- and any", origin, line, w[1].shown(), w[1].at);
    r->least_members = static_cast<int32_t>(least);
    r->most_members = most > INT32_MAX ? INT32_MAX : static_cast<int32_t>(most);
    const int cpus = find(w[2], cpus_names, 4);
    if (cpus < 0)
        return fail(Err::arg, "%s, line %d: %.*s does not say whose CPUs; allowed are %s", origin, line, w[2].shown(), w[2].at,
                    List(cpus_names, 4).text);
    r->cpus = static_cast<Cpus>(cpus);
    if (!parse_range(w[3], &r->least, &r->most))
        return fail(Err::arg, "%s, line %d: %.*s is no range of bytes; allowed are 4K, 0-4K, 64K- and any", origin, line, w[3].shown(), w[3].at);
    WEFT_TRY(parse_algorithm(origin, line, r->operation, w[4], &algorithm));
    r->algorithm = static_cast<Algorithm>(algorithm);
    if (r->algorithm == Algorithm::lines && (r->least > 1 || r->most > Layout::slot_bytes))
        return fail(Err::arg, "%s, line %d: lines serve from 0 to at most 4K bytes, not %.*s", origin, line, w[3].shown(), w[3].at);
    return Err::ok;
}

}  // namespace

Err parse_rows(const char* origin, const char* text, Rule* rows, int32_t* n) {
    *n = 0;
    for (int line = 1; *text != 0; line++) {
        Word words[5]{};
        int found = 0;
        const char *at = text, *end = text + strcspn(text, "#\n");
        for (at += strspn(at, separators); at < end; at += strspn(at, separators)) {
            const Word w{at, strcspn(at, " \t\r\n#")};
            if (found == 5)
                return fail(Err::arg, "%s, line %d: %.*s is one word too many; a line is: operation members cpus bytes algorithm", origin, line,
                            w.shown(), w.at);
            words[found++] = w;
            at += w.length;
        }
        if (found != 0 && found != 5)
            return fail(Err::arg, "%s, line %d: %d words; a line is: operation members cpus bytes algorithm", origin, line, found);
        if (found == 5 && *n == most_rows) return fail(Err::arg, "%s, line %d: more than %d rows", origin, line, most_rows);
        if (found == 5) WEFT_TRY(parse_row(origin, line, words, &rows[(*n)++]));
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return Err::ok;
}

Err parse_forced(const char* origin, const char* text, uint8_t (&forced)[n_operations]) {
    while (*text != 0) {
        const size_t name = strcspn(text, "=,"), all = strcspn(text, ",");
        if (name == all) return fail(Err::arg, "%s: allowed is operation=algorithm,..., not %.*s", origin, static_cast<int>(all), text);
        Operation o;
        WEFT_TRY(parse_operation(origin, 1, {text, name}, &o));
        WEFT_TRY(parse_algorithm(origin, 1, o, {text + name + 1, all - name - 1}, &forced[static_cast<int>(o)]));
        text += all + (text[all] == ',');
    }
    return Err::ok;
}

namespace {

// Memory while the table is read; freed by who asked for it.
struct Reading {
    char text[most_text];
    char origin[512];
    Rule rows[most_rows];
    int32_t n;
};

Err read_file(const char* path, Reading& r) {
    const int64_t n = os::read_file(path, r.text, sizeof r.text);
    if (n < 0) return fail(Err::arg, "%s=%s: %s", table_variable, path, strerror(errno));
    if (n == most_text) return fail(Err::arg, "%s=%s: a file of less than %lld bytes is allowed", table_variable, path, static_cast<long long>(most_text));
    r.text[n] = 0;
    snprintf(r.origin, sizeof r.origin, "%s=%s", table_variable, path);
    return parse_rows(r.origin, r.text, r.rows, &r.n);
}

Err read_into(obj::Process& p, const char* path, const char* force, Reading& r, Table& t) {
    uint8_t forced[n_operations];
    memset(forced, n_algorithms, sizeof forced);
    if (path != nullptr) WEFT_TRY(read_file(path, r));
    if (force != nullptr) WEFT_TRY(parse_forced(force_variable, force, forced));
    if (!compose(t, static_cast<Forced>(p.coll_choice), forced, r.rows, r.n)) return fail(Err::arg, "%s=%s: too many rows", table_variable, path);
    return Err::ok;
}

}  // namespace

Err read_table(obj::Process& p) {
    const char *path = os::env(table_variable), *force = os::env(force_variable);
    if (path == nullptr && force == nullptr) return Err::ok;
    auto* reading = static_cast<Reading*>(calloc(1, sizeof(Reading)));
    auto* table = static_cast<Table*>(malloc(sizeof(Table)));
    Err e = reading != nullptr && table != nullptr ? read_into(p, path, force, *reading, *table) : fail(Err::no_mem, "no memory for the table of algorithms");
    free(reading);
    if (e == Err::ok) p.coll_table = table;
    else free(table);
    return e;
}

void free_table(obj::Process& p) {
    free(const_cast<Table*>(p.coll_table));
    p.coll_table = nullptr;
}

}  // namespace weft::coll
