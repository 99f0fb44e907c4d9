// The command line: MPI's own syntax (one or two dashes, sections between colons), from one table of options.
#pragma once
#include <string>
#include <vector>

#include "plan.hpp"

namespace mpiexec {

// Exits with a message (status 2) where the line is wrong, and after -h and -version.
Plan parse(const std::vector<std::string>& line);

}  // namespace mpiexec
