// Tokens of the text form.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace eagle::kernel {

struct Position {
  int line = 1;  // line and column count from 1, columns in bytes
  int column = 1;
};
std::string to_string(Position position);  // "3:12"

struct Token {
  enum class Kind {
    end,
    word,    // a name, keyword or literal: letters, digits, _ . and signs where a number has them
    string,  // text between quotes, still escaped
    value,   // %N; the text is N
    mark,    // one of { } [ ] ( ) : , = @ or ->
    bad,     // anything else; the text is what was found
  };
  Kind kind = Kind::end;
  std::string_view text;
  Position position;
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}
  // The next token; `end` for ever once the text is used up.
  Token next();

private:
  void skip_blanks();
  Token take(Token::Kind kind, std::size_t length);

  std::string_view text_;  // what is left
  Position position_;
};

}  // namespace eagle::kernel
