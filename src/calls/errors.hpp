// Error classes, codes and their texts, the predefined ones and the user's, and the calls on them. For api/.
// The registry's lock guards the user's; usable before initialisation and after finalisation.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "obj/process.hpp"

namespace weft::calls {

using obj::Process;

// "MPI_ERR_TAG" for a predefined class, the user's text for a user's code (or "error code N").
void error_name(Process&, int code, char* text, int size);

Err error_class(Process&, int code, int* error_class);
Err error_string(Process&, int code, char* text, int* length);
Err add_error_class(Process&, int* error_class);
Err add_error_code(Process&, int error_class, int* code);
Err add_error_string(Process&, int code, const char* text);
Err remove_error_class(Process&, int error_class);
Err remove_error_code(Process&, int code);
Err remove_error_string(Process&, int code);

}  // namespace weft::calls
