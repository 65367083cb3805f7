// What programs of measurement tell tests/bench/run.py: rows of forms with all their values, as JSON.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace eagle::bench {

// `kind`: "ours", "limit" (a hand-written twin) or "other". Values are seconds a unit of work, or in the
// row's unit.
struct MeasuredForm {
  std::string name;
  std::string kind;
  std::vector<double> values;
};
struct MeasuredRow {
  std::string title;
  std::string unit;
  std::vector<MeasuredForm> forms;
};

// Titles and names hold nothing that JSON would escape.
inline void print_json(const std::vector<MeasuredRow>& rows) {
  const char* row_separator = "[";
  for (const MeasuredRow& row : rows) {
    std::printf(R"(%s{"row": "%s", "unit": "%s", "forms": [)", row_separator, row.title.c_str(),
                row.unit.c_str());
    row_separator = ",\n ";
    const char* separator = "";
    for (const MeasuredForm& form : row.forms) {
      std::printf(R"(%s{"form": "%s", "kind": "%s", "values": [)", separator, form.name.c_str(),
                  form.kind.c_str());
      separator = ", ";
      for (std::size_t i = 0; i < form.values.size(); ++i)
        std::printf("%s%.9g", i == 0 ? "" : ", ", form.values[i]);
      std::printf("]}");
    }
    std::printf("]}");
  }
  std::printf("]\n");
}

// For people: minimum, median, and the ratio of minima to the first form's.
inline void print_text(const std::vector<MeasuredRow>& rows) {
  for (const MeasuredRow& row : rows) {
    std::printf("%s\n", row.title.c_str());
    const bool time = row.unit == "s";
    for (const MeasuredForm& form : row.forms) {
      std::vector<double> sorted = form.values;
      std::ranges::sort(sorted);
      const double scale = time ? 1e6 : 1;
      std::printf("  %-36s %12.3f min %12.3f median  %-5s %6.2fx\n", form.name.c_str(),
                  scale * sorted.front(), scale * sorted[sorted.size() / 2], time ? "us" : row.unit.c_str(),
                  sorted.front() / std::ranges::min(row.forms.front().values));
    }
  }
}

}  // namespace eagle::bench
