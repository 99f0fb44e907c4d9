// weft doctor: what the machine allows, and what Weft does where it does not.
#include <cstdio>
#include <cstring>

#include "probe.hpp"
#include "report.hpp"

namespace weft_cmd {

int doctor(int argc, char** argv) {
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (!std::strcmp(argv[i], "--json")) json = true;
        else {
            fprintf(stderr, "usage: weft doctor [--json]\n");
            return std::strcmp(argv[i], "--help") != 0 ? 2 : 0;
        }
    }
    static const char* const names[] = {"ok", "stepped around", "problem"};
    int problems = 0, stepped = 0;
    std::vector<Section> sections;
    for (const Finding& f : probe_machine()) {
        problems += f.state == State::problem;
        stepped += f.state == State::stepped_around;
        const char* state = names[static_cast<int>(f.state)];
        if (json) {
            Section s{f.name, {}};
            s.add("state", state);
            s.add("found", f.found);
            s.add("instead", f.instead);
            sections.push_back(s);
        } else {
            printf("%-14s  %-14s  %s\n", f.name.c_str(), state, f.found.c_str());
            if (!f.instead.empty()) printf("%-14s  %-14s  -> %s\n", "", "", f.instead.c_str());
        }
    }
    if (json) print_json(sections);
    else if (problems) printf("%d problems: see above\n", problems);
    else if (stepped) printf("Weft runs here, and steps around what is marked so (%d)\n", stepped);
    else printf("Weft runs here, with everything it knows\n");
    return problems ? 1 : 0;
}

}  // namespace weft_cmd
