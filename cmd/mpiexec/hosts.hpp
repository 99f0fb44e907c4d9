// Host lists: this mpiexec starts ranks on one machine, so every host must be this one; slots count.
#pragma once
#include <string>

namespace mpiexec {

int slots_of_list(const std::string& list);  // "here:4,here"; exits with a message for a host elsewhere
int slots_of_file(const std::string& file);  // "here slots=4", "here:4"

}  // namespace mpiexec
