// What the machine allows, each found out by trying it. Nothing is left behind. Included by this command alone.
#pragma once
#include <string>
#include <vector>

namespace weft_cmd {

enum class State { ok, stepped_around, problem };

struct Finding {
    std::string name;
    State state;
    std::string found;    // what the machine does
    std::string instead;  // what Weft does about it; empty where nothing is to be done
};

std::vector<Finding> probe_machine();
// The one that `weft info` also shows: may the ranks of a job copy from each other directly?
Finding probe_single_copy();

}  // namespace weft_cmd
