#include "client/resume_token.h"

#include <charconv>
#include <string>

namespace eagle {
namespace {

constexpr std::size_t id_digits = 16;
constexpr std::size_t secret_digits = 64;

template <typename T>
bool from_hexadecimal(std::string_view digits, T& value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return error == std::errc() && end == digits.data() + digits.size();
}

}  // namespace

StatusOr<Resumption> resumption_of(std::string_view token) {
  const Status bad(Reason::bad_value,
                   "resume: expected the resume_token of a session (16 and 64 hexadecimal digits with a '-' "
                   "between them), found a text of " +
                       std::to_string(token.size()) + " characters that is none");
  if (token.size() != id_digits + 1 + secret_digits || token[id_digits] != '-') return bad;
  Resumption resumption;
  if (!from_hexadecimal(token.substr(0, id_digits), resumption.session)) return bad;
  const std::string_view secret = token.substr(id_digits + 1);
  for (std::size_t i = 0; i < secret.size(); i += 2) {
    unsigned byte = 0;
    if (!from_hexadecimal(secret.substr(i, 2), byte)) return bad;
    resumption.secret += static_cast<char>(byte);
  }
  return resumption;
}

}  // namespace eagle
