#include "obj/settings.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/env.hpp"
#include "os/process.hpp"

namespace weft::obj {

constinit const Setting settings_table[] = {
    {"WEFT_INLINE_MAX", &Settings::inline_max, 48, 0, 48, nullptr,
     "Bytes of a message that travel in its header's cache line.", "docs/experiments/001-rings.md"},
    {"WEFT_EAGER_MAX", &Settings::eager_max, 512 * 1024, 0, 1 << 30, nullptr,
     "Bytes of a message that are sent eagerly; from 64 KiB on only where the pipelined copy is the faster way.",
     "docs/experiments/008-who-copies.md"},
    {"WEFT_FRAGMENT", &Settings::fragment, 4 * 1024, 64, 32 * 1024, nullptr,
     "Least bytes per fragment of an eager message; one of more than four such fragments has larger ones.", "docs/experiments/002-large-messages.md"},
    {"WEFT_BLOCK", &Settings::block, 32 * 1024, 64, 32 * 1024, nullptr,
     "Bytes per block of a pipelined copy.", "docs/experiments/002-large-messages.md"},
    {"WEFT_MAPPED", &Settings::mapped, 1, 0, 1, "off|on",
     "Whether a message whose buffer lies in the shared heap (MPI_Alloc_mem) is copied from where it lies.", "docs/experiments/020-mapped-copy.md"},
    {"WEFT_MAPPED_MIN", &Settings::mapped_min, 8 * 1024, 64, 64 * 1024, nullptr,
     "Bytes of a message from which it is.", "docs/experiments/020-mapped-copy.md"},
    {"WEFT_MAPPED_BOTH", &Settings::mapped_both, 16 * 1024, 0, int64_t{1} << 62, nullptr,
     "Bytes from which both sides copy, if the receive buffer lies in the shared heap, too.", "docs/experiments/020-mapped-copy.md"},
    {"WEFT_MAPPED_BLOCK", &Settings::mapped_block, 8 * 1024, 64, 1 << 20, nullptr,
     "Least bytes that each side claims at a time: an eighth of the message, at most four times this.", "docs/experiments/020-mapped-copy.md"},
    {"WEFT_LARGE", &Settings::large, 0, 0, 2, "auto|pipelined|split",
     "How both sides move a large message: pipelined copy, split CMA, or what is faster on this processor.",
     "docs/experiments/011-fewer-mechanisms.md"},
    {"WEFT_CLAIM", &Settings::claim, 0, 0, 2, "auto|off|on",
     "Whether a reader claims the cache lines it has read; auto: where that is faster.", "docs/experiments/011-fewer-mechanisms.md"},
    {"WEFT_CREDIT", &Settings::credit, 4 << 20, 0, int64_t{1} << 40, nullptr,
     "Bytes of unmatched messages kept per peer; beyond, its sends wait until they are matched.", "docs/experiments/003-credit.md"},
    {"WEFT_SPIN_POLLS", &Settings::spin_polls, 50, 1, 1 << 30, nullptr,
     "Looks of a waiting rank before it reads the clock; 1 where ranks outnumber CPUs: there it yields after each look.", "docs/experiments/004-waiting.md"},
    {"WEFT_SLEEP_MS", &Settings::sleep_ms, 5, 0, 1 << 20, nullptr,
     "Milliseconds without progress after which a waiting rank sleeps; 0.05 where somebody else wants its CPU.", "docs/experiments/004-waiting.md"},
    {"WEFT_CMA", &Settings::cma, 1, 0, 1, "off|on",
     "Whether large messages may be copied straight between processes.", "docs/experiments/002-large-messages.md"},
    {"WEFT_COLL", &Settings::coll, 0, 0, 3, "auto|messages|lines|stages",
     "Algorithms of collectives, for tests: the fastest known; messages alone; lines and slots, or staging memory, wherever they can be used.",
     "docs/collectives.md"},
    {"WEFT_NODE_RANKS", &Settings::node_ranks, 0, 0, 1 << 20, nullptr,
     "Ranks per node as collectives see it, for tests of their two levels; 0: all ranks are where they are, on one node.",
     "docs/ARCHITECTURE.md"},
    {"WEFT_WIRE", &Settings::wire, 0, 0, 3, "shm|null|sock|mixed",
     "The wire to the other ranks: shared memory; none, for a lone rank with peers that take everything; sockets; or shared memory among "
     "WEFT_NODE_RANKS ranks and sockets beyond.", "docs/design-of-wires.md"},
    {"WEFT_NULL_SIZE", &Settings::null_size, 2, 2, 1 << 20, nullptr,
     "Size of MPI_COMM_WORLD on the null wire.", "docs/ARCHITECTURE.md"},
    {"WEFT_RMA", &Settings::rma, 0, 0, 2, "auto|messages|kernel",
     "How a window is accessed: by loads and stores where all its memory is shared, else by messages, with puts and gets by the kernel where "
     "it copies between processes; always by messages alone; or never by loads and stores.",
     "docs/ARCHITECTURE.md"},
    {"WEFT_LANES", &Settings::lanes, 0, 0, 17, "auto|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|hints",
     "Lanes of a process whose threads communicate at once (MPI_THREAD_MULTIPLE), for its communicators in turn; auto: 16; hints: 16, for "
     "communicators whose hints ask for one.", "docs/lanes.md"},
    {"WEFT_POLICY.progress", &Settings::progress, 0, 0, 2, "hybrid|lane|global",
     "What a waiting thread polls: its own lane, and all lanes every 64th time; its own alone, with which correct programs may hang; or all lanes.",
     "docs/lanes.md"},
    {"WEFT_POLICY.part", &Settings::part, 0, 0, 2, "native|each|one",
     "How partitions travel: copied in place or gathered; each as a message; all as one message.", "docs/experiments/022-partitions.md"},
    {"WEFT_POLICY.pool", &Settings::pool, 0, 0, 2, "receiver|sender|malloc",
     "Where OPI_Free puts a buffer that another rank allocated: into this rank's pool, into that one's, or into that one's heap.",
     "docs/ownership.md"},
    {"WEFT_POLICY.pool_cap", &Settings::pool_cap, 64, 0, 1 << 20, nullptr,
     "Buffers that a rank's pool holds; the least recently freed one returns to the rank that allocated it.", "docs/ownership.md"},
    {"WEFT_POLICY.guard", &Settings::guard, 0, 0, 1, "off|on",
     "Whether a program that touches a buffer which it has given away or freed ends with a message.", "docs/ownership.md"},
    {"WEFT_POLICY.rma_helper", &Settings::rma_helper, 0, 0, 1 << 30, nullptr,
     "Microseconds between the looks of a thread that serves windows accessed by messages while no thread of the program is in MPI, as software "
     "for networks does; 0: there is no such thread, nor below MPI_THREAD_MULTIPLE.", "docs/lanes.md"},
    {"WEFT_LOG", &Settings::log, 0, 0, 3, nullptr,
     "What the library tells on stderr: 1, a line per job; 2, a line per rank; 3, its limits too.", "docs/ARCHITECTURE.md"},
    {"WEFT_COUNTERS", &Settings::counters, 0, 0, 1, "off|on",
     "Whether each rank tells at MPI_Finalize by which ways its messages went; weft info --counters explains them.", "docs/experiments/020-mapped-copy.md"},
};
const int settings_count = static_cast<int>(sizeof settings_table / sizeof *settings_table);

namespace {

bool parse_number(const char* text, int64_t* out) {
    char* end = nullptr;
    const long long v = strtoll(text, &end, 10);
    if (end == text) return false;
    int shift = 0;
    if (*end == 'k' || *end == 'K') shift = 10;
    else if (*end == 'm' || *end == 'M') shift = 20;
    else if (*end == 'g' || *end == 'G') shift = 30;
    if (shift != 0) ++end;
    if (*end != 0 || v < 0 || v > INT64_MAX >> shift) return false;
    *out = static_cast<int64_t>(v) << shift;
    return true;
}

bool parse_word(const char* text, const char* words, int64_t* out) {
    const size_t n = strlen(text);
    int64_t index = 0;
    for (const char* w = words; w != nullptr; ++index) {
        const char* bar = strchr(w, '|');
        const size_t length = bar != nullptr ? static_cast<size_t>(bar - w) : strlen(w);
        if (length == n && strncmp(w, text, n) == 0) {
            *out = index;
            return true;
        }
        w = bar != nullptr ? bar + 1 : nullptr;
    }
    return parse_number(text, out);
}

constexpr char policies[] = "WEFT_POLICY";
constexpr size_t policies_length = sizeof policies - 1;

bool is_policy(const Setting& row) { return strncmp(row.name, policies, policies_length) == 0; }

// Calls `f` with each name=value of WEFT_POLICY until it returns true.
template <class F>
void each_policy(F&& f) {
    for (const char* item = os::env(policies); item != nullptr && *item != 0;) {
        const size_t length = strcspn(item, ","), name = strcspn(item, "=,");
        if (f(item, name, length)) return;
        item += length + (item[length] == ',');
    }
}

// Of an item of WEFT_POLICY: whether it sets `row`.
bool sets(const Setting& row, const char* item, size_t name) {
    const char* own = row.name + policies_length + 1;
    return is_policy(row) && strlen(own) == name && strncmp(own, item, name) == 0;
}

// The file that WEFT_TUNED names; without one it has no lines.
class Tuned {
public:
    Err read() {
        const char* path = os::env(variable);
        if (path == nullptr) return Err::ok;
        const int64_t n = os::read_file(path, text_, sizeof text_);
        if (n < 0) return fail(Err::arg, "%s=%s: %s", variable, path, strerror(errno));
        if (n == sizeof text_) return fail(Err::arg, "%s=%s: a file of less than %zu bytes is allowed", variable, path, sizeof text_);
        text_[n] = 0;
        return check(path);
    }
    // The value of a line that sets this; null where there is none.
    const char* find(const char* name, char (&value)[64]) const {
        const size_t length = strlen(name);
        for (const char* line = text_; *line != 0; line = after(line)) {
            if (strncmp(line, name, length) != 0 || line[length] != '=') continue;
            const char* from = line + length + 1;
            snprintf(value, sizeof value, "%.*s", static_cast<int>(strcspn(from, " \t\r\n#")), from);
            return value;
        }
        return nullptr;
    }

private:
    static constexpr char variable[] = "WEFT_TUNED";
    static const char* after(const char* line) { return line + strcspn(line, "\n") + (strchr(line, '\n') != nullptr); }

    static bool is_setting(const char* name, size_t length) {
        for (const Setting& row : settings_table)
            if (strlen(row.name) == length && strncmp(row.name, name, length) == 0) return true;
        return false;
    }

    // Every line sets something, or is empty or a comment.
    Err check(const char* path) const {
        for (const char* line = text_; *line != 0; line = after(line)) {
            const size_t length = strcspn(line, " =\t\r\n#");
            if (line[length] == '=' ? !is_setting(line, length) : length != 0)
                return fail(Err::arg, "%s=%s: allowed are lines NAME=VALUE, with the names that weft info --cvars lists, not %.*s", variable, path,
                            static_cast<int>(strcspn(line, "\r\n")), line);
        }
        return Err::ok;
    }

    char text_[8192] = "";
};

// What the environment says of a setting; null: nothing. A policy's value is written to `policy`.
const char* text_of(const Setting& row, char (&policy)[64]) {
    if (!is_policy(row)) return os::env(row.name);
    policy[0] = 0;
    each_policy([&](const char* item, size_t name, size_t length) {
        if (!sets(row, item, name)) return false;
        snprintf(policy, sizeof policy, "%.*s", static_cast<int>(length > name ? length - name - 1 : 0), item + name + 1);
        return true;
    });
    return policy;
}

Err check_policies() {
    Err e = Err::ok;
    each_policy([&](const char* item, size_t name, size_t length) {
        for (const Setting& row : settings_table)
            if (length > name + 1 && sets(row, item, name)) return false;
        e = fail(Err::arg, "%s: allowed is name=value, with the names that weft info lists, not %.*s", policies, static_cast<int>(length), item);
        return true;
    });
    return e;
}

}  // namespace

// One setting's value, and where it comes from.
static Err read_one(const Setting& row, const Tuned& tuned, int64_t* value, const char** origin) {
    *value = row.initial;
    *origin = "environment";
    char space[64];
    const char* text = text_of(row, space);
    if (text == nullptr || *text == 0) {
        *origin = "file";
        text = tuned.find(row.name, space);
    }
    if (text == nullptr) {
        *origin = "default";
        return Err::ok;
    }
    const bool good = row.words != nullptr ? parse_word(text, row.words, value) : parse_number(text, value);
    if (good && *value >= row.least && *value <= row.most) return Err::ok;
    if (row.words != nullptr) return fail(Err::arg, "%s=%.40s: allowed is %s", row.name, text, row.words);
    return fail(Err::arg, "%s=%.40s: allowed is a number from %lld to %lld", row.name, text,
                static_cast<long long>(row.least), static_cast<long long>(row.most));
}

Err read_settings(Settings* s) {
    Tuned tuned;
    WEFT_TRY(tuned.read());
    const char* origin;
    for (const Setting& row : settings_table) WEFT_TRY(read_one(row, tuned, &(s->*row.field), &origin));
    return check_policies();
}

Err describe_setting(int i, char* value, const char** origin) {
    const Setting& row = settings_table[i];
    int64_t v;
    Tuned tuned;
    *origin = "default";
    WEFT_TRY(tuned.read());
    WEFT_TRY(read_one(row, tuned, &v, origin));
    if (row.words == nullptr) {
        snprintf(value, 32, "%lld", static_cast<long long>(v));
        return Err::ok;
    }
    const char* w = row.words;
    for (; v > 0 && strchr(w, '|') != nullptr; --v) w = strchr(w, '|') + 1;
    const size_t n = strcspn(w, "|");
    memcpy(value, w, n < 31 ? n : 31);
    value[n < 31 ? n : 31] = 0;
    return Err::ok;
}

}  // namespace weft::obj
