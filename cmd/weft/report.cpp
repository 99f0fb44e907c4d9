#include "report.hpp"

#include <cstdarg>
#include <cstdio>
#include <fstream>

namespace weft_cmd {

std::string printf_string(const char* format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return text;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') out += '\\', out += static_cast<char>(c);
        else if (c < 0x20) out += printf_string("\\u%04x", c);
        else out += static_cast<char>(c);
    }
    return out + "\"";
}

std::string human_bytes(unsigned long long bytes) {
    static const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = static_cast<double>(bytes);
    int unit = 0;
    while (value >= 1024 && unit < 5) value /= 1024, unit++;
    return unit == 0 ? printf_string("%llu bytes", bytes) : printf_string("%.4g %s", value, units[unit]);
}

std::string read_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

void print_text(const std::vector<Section>& sections) {
    size_t width = 0;
    for (const Section& s : sections)
        for (const Fact& f : s.facts) width = f.key.size() > width ? f.key.size() : width;
    for (const Section& s : sections) {
        printf("%s\n", s.title.c_str());
        for (const Fact& f : s.facts) printf("  %-*s  %s\n", static_cast<int>(width), f.key.c_str(), f.value.c_str());
    }
}

void print_json(const std::vector<Section>& sections) {
    printf("{");
    for (size_t i = 0; i < sections.size(); i++) {
        printf("%s\n  %s: {", i ? "," : "", quoted(sections[i].title).c_str());
        const auto& facts = sections[i].facts;
        for (size_t k = 0; k < facts.size(); k++) {
            const std::string value = facts[k].raw ? facts[k].value : quoted(facts[k].value);
            printf("%s\n    %s: %s", k ? "," : "", quoted(facts[k].key).c_str(), value.c_str());
        }
        printf("\n  }");
    }
    printf("\n}\n");
}

}  // namespace weft_cmd
