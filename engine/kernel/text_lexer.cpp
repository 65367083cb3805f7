#include "engine/kernel/text_lexer.h"

namespace eagle::kernel {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}
bool is_sign(char c) { return c == '+' || c == '-'; }

// Length of the word or number at the start of `text`, or 0. A sign belongs to it at the start and after the
// letter of an exponent.
std::size_t word_length(std::string_view text) {
  const bool sign_first = is_sign(text[0]);
  const std::string_view unsigned_text = text.substr(sign_first ? 1 : 0);
  if (unsigned_text.empty() || !is_word(unsigned_text[0])) return 0;
  const bool number = sign_first || is_digit(text[0]) || text[0] == '.';
  std::size_t length = sign_first ? 1 : 0;
  while (length < text.size()) {
    const char before = length == 0 ? ' ' : text[length - 1];
    const bool exponent = before == 'p' || before == 'P' || before == 'e' || before == 'E';
    const bool exponent_sign = number && length > 0 && is_sign(text[length]) && exponent;
    if (!is_word(text[length]) && !exponent_sign) break;
    ++length;
  }
  return length;
}

// Length of the quoted string at the start of `text` with both quotes, or 0 when it does not end on its line.
std::size_t string_length(std::string_view text) {
  for (std::size_t i = 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return 0;
}

}  // namespace

std::string to_string(Position position) {
  return std::to_string(position.line) + ":" + std::to_string(position.column);
}

Token Lexer::next() {
  skip_blanks();
  if (text_.empty()) return take(Token::Kind::end, 0);
  const char c = text_[0];
  if (text_.substr(0, 2) == "->") return take(Token::Kind::mark, 2);
  if (std::string_view("{}[]():,=@").find(c) != std::string_view::npos) return take(Token::Kind::mark, 1);
  if (c == '"') {
    const std::size_t length = string_length(text_);
    if (length == 0) return take(Token::Kind::bad, 1);
    Token token = take(Token::Kind::string, length);
    token.text = token.text.substr(1, length - 2);
    return token;
  }
  if (c == '%') {
    std::size_t length = 1;
    while (length < text_.size() && is_digit(text_[length])) ++length;
    Token token = take(length > 1 ? Token::Kind::value : Token::Kind::bad, length);
    if (length > 1) token.text.remove_prefix(1);
    return token;
  }
  const std::size_t length = word_length(text_);
  return length > 0 ? take(Token::Kind::word, length) : take(Token::Kind::bad, 1);
}

void Lexer::skip_blanks() {
  while (!text_.empty()) {
    if (text_.substr(0, 2) == "//") {
      take(Token::Kind::bad, text_.substr(0, text_.find('\n')).size());
    } else if (text_[0] == ' ' || text_[0] == '\t' || text_[0] == '\r' || text_[0] == '\n') {
      take(Token::Kind::bad, 1);
    } else {
      return;
    }
  }
}

Token Lexer::take(Token::Kind kind, std::size_t length) {
  const Token token{kind, text_.substr(0, length), position_};
  for (const char c : token.text) {
    position_ = c == '\n' ? Position{position_.line + 1, 1} : Position{position_.line, position_.column + 1};
  }
  text_.remove_prefix(length);
  return token;
}

}  // namespace eagle::kernel
