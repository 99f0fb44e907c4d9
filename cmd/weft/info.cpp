// weft info: what this installation is; the first thing to paste into a bug report.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "heaps.hpp"
#include "lane/counters.hpp"
#include "library.hpp"
#include "probe.hpp"
#include "report.hpp"

namespace weft_cmd {
namespace {

Section about_weft(const Library& library) {
    Section s{"weft", {}};
    s.add("version", WEFT_VERSION);
    s.add("library", library.loaded() ? library.path() : "not found: " + library.error());
    if (!library.loaded()) return s;
    if (auto version = library.find<int (*)(char*, int*)>("MPI_Get_library_version")) {
        char text[8192] = "";
        int length = 0;
        if (version(text, &length) == 0) s.add("library says", std::string(text).substr(0, std::string(text).find('\n')));
    }
    int major = 0, minor = 0;
    if (auto version = library.find<int (*)(int*, int*)>("MPI_Get_version"); version && version(&major, &minor) == 0)
        s.add("MPI standard", printf_string("%d.%d", major, minor));
    if (auto version = library.find<int (*)(int*, int*)>("MPI_Abi_get_version"); version && version(&major, &minor) == 0)
        s.add("ABI version", printf_string("%d.%d", major, minor));
    return s;
}

Section about_build() {
    Section s{"build", {}};
    s.add("compiler", WEFT_BUILT_WITH);
    s.add("flags", WEFT_BUILT_FLAGS);
    s.add("type", WEFT_BUILT_TYPE);
    s.add_raw("argument checks", WEFT_BUILT_CHECKS ? "true" : "false");
    s.add_raw("checks of addresses", WEFT_BUILT_CHECK_HANDLES ? "true" : "false");
    s.add_raw("threads", WEFT_BUILT_SINGLE ? "false" : "true");
    if (*WEFT_BUILT_SANITIZE) s.add("sanitizers", WEFT_BUILT_SANITIZE);
    return s;
}

Section about_machine() {
    Section s{"machine", {}};
    utsname name{};
    uname(&name);
    s.add("system", printf_string("%s %s %s", name.sysname, name.release, name.machine));
    for (const Finding& f : probe_machine()) {
        if (f.name == "memory" || f.name == "limits" || f.name == "processors" || f.name == "/dev/shm" || f.name == "single copy")
            s.add(f.name, f.found + (f.instead.empty() ? "" : " -> " + f.instead));
    }
    s.add("wires", "shm (ranks of this machine), null (an infinitely fast peer, for counting: WEFT_WIRE=null)");
    return s;
}

// The library's own list: one "name 1" or "name 0" a line.
int print_api(const Library& library, bool json) {
    auto list = library.find<const char* (*)()>("weft_api_list");
    if (list == nullptr) {
        fprintf(stderr, "weft: this library has no list of its functions%s%s\n", library.loaded() ? "" : ": ", library.error().c_str());
        return 1;
    }
    int implemented = 0, total = 0;
    std::string text = list(), name;
    Section s{"functions", {}};
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\n', at);
        if (end == std::string::npos) end = text.size();
        std::string line = text.substr(at, end - at);
        at = end + 1;
        size_t gap = line.find(' ');
        if (gap == std::string::npos) continue;
        std::string state = line.substr(gap + 1);
        total++;
        implemented += state == "1";
        s.add(line.substr(0, gap), state == "1" ? "implemented" : "unsupported");
    }
    if (json) {
        print_json({s});
        return 0;
    }
    for (const Fact& f : s.facts) printf("%-36s %s\n", f.key.c_str(), f.value.c_str());
    printf("%d of %d functions are implemented; the others check their arguments and raise MPI_ERR_UNSUPPORTED_OPERATION\n", implemented, total);
    return 0;
}

// A misspelt control variable changes nothing, and nobody says so but this.
void warn_of_unknown(const std::vector<Section>& known) {
    static const char* const of_commands[] = {"WEFT_CC", "WEFT_CXX", "WEFT_PEERS", "WEFT_RANK", "WEFT_SIZE", "WEFT_INFO", "WEFT_LAUNCHER_TIMEOUT", "WEFT_BOOT_FD", "WEFT_BOOT_ADDR", "WEFT_COOKIE", "WEFT_HEAP", "WEFT_PROFILE", "WEFT_TUNED", "WEFT_COLL_TABLE", "WEFT_COLL_FORCE"};
    for (char** e = environ; *e; e++) {
        std::string name(*e, std::strcspn(*e, "="));
        if (name.rfind("WEFT_", 0) != 0) continue;
        bool used = std::any_of(known.begin(), known.end(), [&](const Section& s) { return s.title == name || s.title.rfind(name + ".", 0) == 0; }) ||
                    std::find(std::begin(of_commands), std::end(of_commands), name) != std::end(of_commands);
        if (!used) fprintf(stderr, "weft: %s is set, and is no control variable\n", name.c_str());
    }
}

// Every control variable: value, origin and what it is for.
int print_cvars(const Library& library, bool json) {
    using Setting = int (*)(int, const char**, char*, const char**, const char**, const char**);
    auto setting = library.find<Setting>("weft_setting");
    if (setting == nullptr) {
        fprintf(stderr, "weft: this library has no list of its variables%s%s\n", library.loaded() ? "" : ": ", library.error().c_str());
        return 1;
    }
    const char *name, *origin, *what, *evidence;
    char value[32];
    bool bad = false;
    std::vector<Section> all;
    for (int i = 0; setting(i, &name, value, &origin, &what, &evidence); i++) {
        bad |= !std::strcmp(value, "?");
        all.push_back(Section{name, {}});
        all.back().add("value", value);
        all.back().add("origin", origin);
        all.back().add("what", what);
        all.back().add("evidence", evidence);
        if (!json) printf("%-20s %-12s %-12s %s\n", name, value, origin, what);
    }
    if (json) print_json(all);
    warn_of_unknown(all);
    if (bad) fprintf(stderr, "weft: a value marked ? is not allowed; MPI_Init would say what is\n");
    return bad ? 1 : 0;
}

// What WEFT_COUNTERS=1 prints at MPI_Finalize.
int print_counters(bool json) {
    Section s{"counters", {}};
    s.add(weft::lane::sent_inline_row.name, weft::lane::sent_inline_row.what);
    for (const weft::lane::CounterRow& row : weft::lane::counter_rows) s.add(row.name, row.what);
    if (json) print_json({s});
    else for (const Fact& f : s.facts) printf("%-22s %s\n", f.key.c_str(), f.value.c_str());
    return 0;
}

}  // namespace

int info(int argc, char** argv) {
    bool json = false, api = false, cvars = false, counters = false, heap = false;
    for (int i = 1; i < argc; i++) {
        if (!std::strcmp(argv[i], "--json")) json = true;
        else if (!std::strcmp(argv[i], "--api")) api = true;
        else if (!std::strcmp(argv[i], "--cvars")) cvars = true;
        else if (!std::strcmp(argv[i], "--counters")) counters = true;
        else if (!std::strcmp(argv[i], "--heap")) heap = true;
        else {
            fprintf(stderr, "usage: weft info [--api | --cvars | --counters | --heap] [--json]\n");
            return std::strcmp(argv[i], "--help") != 0 ? 2 : 0;
        }
    }
    if (heap) return print_heaps(json);
    Library library;
    if (api) return print_api(library, json);
    if (cvars) return print_cvars(library, json);
    if (counters) return print_counters(json);
    std::vector<Section> sections{about_weft(library), about_build(), about_machine()};
    if (json) print_json(sections);
    else print_text(sections);
    return library.loaded() ? 0 : 1;
}

}  // namespace weft_cmd
