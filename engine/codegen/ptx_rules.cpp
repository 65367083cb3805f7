#include "engine/codegen/ptx_rules.h"

#include <algorithm>
#include <string>
#include <vector>

namespace eagle::codegen {
namespace {

using Words = std::vector<std::string_view>;

bool has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_one_of(std::string_view word, auto... known) { return ((word == known) || ...); }

bool is_real(std::string_view word) {
  return is_one_of(word, "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f32x2", "f64", "e4m3x2", "e5m2x2");
}

// A conversion is exact, or says how it rounds.
std::string_view problem_of_conversion(const Words& words) {
  const std::string_view to = words[words.size() - 2], from = words.back();
  // To whole numbers, as such or as reals, every rounding is meant.
  const bool rounds_whole = has(words, "rni") || has(words, "rzi") || has(words, "rmi") || has(words, "rpi");
  if (rounds_whole) return {};
  if (to == "f64" && from == "f32") return {};
  return has(words, "rn") ? "" : "a conversion that says .rn or rounds to a whole number";
}

// What is wrong with an instruction on reals: its name and what follows it, without dots. Empty: nothing.
std::string_view problem_of(const Words& words) {
  for (const std::string_view word : words) {
    if (is_one_of(word, "approx", "ftz", "full", "sat", "rz", "rm", "rp"))
      return "an exact operation: no .approx, .ftz, .full, .sat, and no rounding but .rn";
  }
  const std::string_view name = words[0];
  if (is_one_of(name, "add", "sub", "mul", "fma", "div", "sqrt", "rcp"))
    return has(words, "rn") ? "" : "an operation that says .rn";
  if (name == "cvt") return problem_of_conversion(words);
  if (is_one_of(name, "abs", "neg", "mov", "ld", "st", "setp", "selp", "testp", "copysign")) return {};
  return "one of add sub mul fma div sqrt rcp (with .rn), cvt, abs neg mov ld st setp selp testp copysign";
}

Words words_of(std::string_view instruction) {
  Words words;
  while (true) {
    const std::size_t dot = instruction.find('.');
    words.push_back(instruction.substr(0, dot));
    if (dot == std::string_view::npos) return words;
    instruction.remove_prefix(dot + 1);
  }
}

// The next statement's first word; guards (@%p1) are skipped.
std::string_view instruction_of(std::string_view statement) {
  constexpr std::string_view blanks = " \t{}";
  const auto next_word = [&] {
    const std::size_t first = statement.find_first_not_of(blanks);
    if (first == std::string_view::npos) return std::string_view();
    statement.remove_prefix(first);
    const std::string_view word = statement.substr(0, statement.find_first_of(" \t"));
    statement.remove_prefix(word.size());
    return word;
  };
  const std::string_view word = next_word();
  return word.starts_with('@') ? next_word() : word;
}

}  // namespace

Status check_ptx(std::string_view ptx) {
  std::size_t number = 0;
  while (!ptx.empty()) {
    ++number;
    const std::size_t end = ptx.find('\n');
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end == std::string_view::npos ? ptx.size() : end + 1);
    line = line.substr(0, line.find("//"));
    while (!line.empty()) {  // several statements may share a line
      const std::size_t semicolon = line.find(';');
      const std::string_view instruction = instruction_of(line.substr(0, semicolon));
      line.remove_prefix(semicolon == std::string_view::npos ? line.size() : semicolon + 1);
      if (instruction.empty() || instruction.front() == '.' || instruction.front() == '$') continue;
      const Words words = words_of(instruction);
      if (std::none_of(words.begin() + 1, words.end(), is_real)) continue;
      const std::string_view expected = problem_of(words);
      if (expected.empty()) continue;
      return {Reason::internal, "PTX line " + std::to_string(number) + ": found '" +
                                    std::string(instruction) + "', expected " + std::string(expected)};
    }
  }
  return {};
}

}  // namespace eagle::codegen
