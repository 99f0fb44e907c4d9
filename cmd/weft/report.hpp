// Facts to print: as aligned lines for people, or as one JSON object for programs. Included by this command alone.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace weft_cmd {

// One fact: a name and a text; in JSON a number or a truth value stays one.
struct Fact {
    std::string key;
    std::string value;
    bool raw = false;  // value is JSON already: a number, true, false or null
};

struct Section {
    std::string title;
    std::vector<Fact> facts;
    void add(std::string key, std::string value) { facts.push_back({std::move(key), std::move(value), false}); }
    void add_raw(std::string key, std::string value) { facts.push_back({std::move(key), std::move(value), true}); }
};

std::string quoted(const std::string& text);            // as a JSON string
std::string printf_string(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string human_bytes(unsigned long long bytes);      // "1.5 GiB"
std::string read_line(const char* path);                // the first line of a file, "" when there is none
void print_text(const std::vector<Section>& sections);
void print_json(const std::vector<Section>& sections);

int info(int argc, char** argv);
int doctor(int argc, char** argv);

}  // namespace weft_cmd
