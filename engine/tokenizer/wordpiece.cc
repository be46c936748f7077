#include "engine/tokenizer/wordpiece.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/tokenizer/bert_normalizer.h"
#include "engine/tokenizer/bert_words.h"
#include "engine/tokenizer/wordpiece_vocabulary.h"

namespace hippodrome {

struct WordPieceTokenizer::Impl {
  WordPieceVocabulary vocabulary;
};

namespace {

constexpr int64_t kMostCharacters = 100;

bool BeginsCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) != 0x80; }

// The longest piece at the front of `rest`; id -1 if there is none.
struct Piece {
  int32_t id = -1;
  size_t size = 0;
};

Piece LongestPiece(const WordPieceVocabulary& vocabulary, std::string_view rest, bool continues) {
  for (size_t size = std::min(rest.size(), vocabulary.longest); size > 0; --size) {
    if (size < rest.size() && !BeginsCharacter(rest[size])) continue;
    const int32_t id = vocabulary.Find(rest.substr(0, size), continues);
    if (id >= 0) return {id, size};
  }
  return {};
}

// Whether the word has pieces from end to end; if not, what was appended is of no use.
bool AppendAll(const WordPieceVocabulary& vocabulary, BertWords::Word word, int64_t number,
               std::vector<WordPiece>& pieces) {
  for (size_t begin = 0; begin < word.text.size();) {
    const Piece piece = LongestPiece(vocabulary, word.text.substr(begin), begin > 0);
    if (piece.id < 0) return false;
    const size_t end = begin + piece.size;
    pieces.push_back({piece.id, word.places[begin], word.places[end - 1] + 1, number});
    begin = end;
  }
  return true;
}

// Appends the pieces of a word, the longest possible from left to right, or one [UNK] for all of
// it: when a part has no piece or it has more than 100 characters. `number` becomes their `word`.
void AppendPieces(const WordPieceVocabulary& vocabulary, BertWords::Word word, int64_t number,
                  std::vector<WordPiece>& pieces) {
  const size_t before = pieces.size();
  const auto characters = std::count_if(word.text.begin(), word.text.end(), BeginsCharacter);
  if (characters <= kMostCharacters && AppendAll(vocabulary, word, number, pieces)) return;
  pieces.resize(before);
  const int32_t unk = vocabulary.specials[WordPieceVocabulary::kUnk];
  pieces.push_back({unk, word.places.front(), word.places.back() + 1, number});
}

// Tokenizes the parts of one text from left to right.
class TextTokenizer {
 public:
  explicit TextTokenizer(const WordPieceVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void AppendSpecial(int32_t id, int64_t size) {
    pieces_.push_back({id, place_, place_ + size, word_++});
    place_ += size;
  }

  // Text without special tokens, from space to space: nothing reaches across one, and the buffers
  // stay small.
  void AppendText(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size() - 1) + 1;
      AppendWords(text.substr(0, end));
      text.remove_prefix(end);
    }
  }

  std::vector<WordPiece> Finish() && { return std::move(pieces_); }

 private:
  void AppendWords(std::string_view text) {
    words_.Clear();
    place_ = normalizer_.Normalize(text, place_, words_);
    for (int64_t i = 0; i < words_.size(); ++i) {
      AppendPieces(vocabulary_, words_[i], word_++, pieces_);
    }
  }

  const WordPieceVocabulary& vocabulary_;
  BertNormalizer normalizer_;
  BertWords words_;
  int64_t place_ = 0;  // of what comes next
  int64_t word_ = 0;
  std::vector<WordPiece> pieces_;
};

// Which special token `text` begins with, as an index of kSpecialNames; 5: none.
size_t SpecialAtFront(std::string_view text) {
  const auto& names = WordPieceVocabulary::kSpecialNames;
  const auto* const name = std::find_if(
      names.begin(), names.end(), [text](std::string_view name) { return text.starts_with(name); });
  return static_cast<size_t>(name - names.begin());
}

bool AttachesToTheWordBefore(std::string_view token) {
  constexpr std::string_view kFronts[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  return std::any_of(std::begin(kFronts), std::end(kFronts),
                     [token](std::string_view front) { return token.starts_with(front); });
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WordPieceTokenizer::~WordPieceTokenizer() = default;

absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> WordPieceTokenizer::Parse(
    const std::string& vocab) {
  HIPPODROME_ASSIGN_OR_RETURN(WordPieceVocabulary vocabulary, ParseWordPieceVocabulary(vocab));
  auto impl = std::make_unique<Impl>(Impl{std::move(vocabulary)});
  return std::unique_ptr<WordPieceTokenizer>(new WordPieceTokenizer(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> WordPieceTokenizer::Read(
    const std::string& directory) {
  constexpr size_t kLargestFile = size_t{16} << 20;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string vocab,
                              ReadSmallFile(directory + "/vocab.txt", kLargestFile));
  auto tokenizer = Parse(vocab);
  if (!tokenizer.ok()) return InvalidArgument(directory + "/" + Message(tokenizer.status()));
  return tokenizer;
}

int64_t WordPieceTokenizer::vocab_size() const {
  return static_cast<int64_t>(impl_->vocabulary.tokens.size());
}

int32_t WordPieceTokenizer::pad() const {
  return impl_->vocabulary.specials[WordPieceVocabulary::kPad];
}
int32_t WordPieceTokenizer::unk() const {
  return impl_->vocabulary.specials[WordPieceVocabulary::kUnk];
}
int32_t WordPieceTokenizer::cls() const {
  return impl_->vocabulary.specials[WordPieceVocabulary::kCls];
}
int32_t WordPieceTokenizer::sep() const {
  return impl_->vocabulary.specials[WordPieceVocabulary::kSep];
}
int32_t WordPieceTokenizer::mask() const {
  return impl_->vocabulary.specials[WordPieceVocabulary::kMask];
}

bool WordPieceTokenizer::IsSpecial(int32_t id) const {
  const auto& specials = impl_->vocabulary.specials;
  return std::find(specials.begin(), specials.end(), id) != specials.end();
}

std::vector<WordPiece> WordPieceTokenizer::Tokenize(std::string_view text) const {
  const WordPieceVocabulary& vocabulary = impl_->vocabulary;
  TextTokenizer tokenizer(vocabulary);
  size_t bracket = text.find('[');
  while (bracket != text.npos) {
    const size_t special = SpecialAtFront(text.substr(bracket));
    if (special == vocabulary.specials.size()) {
      bracket = text.find('[', bracket + 1);
      continue;
    }
    const size_t size = WordPieceVocabulary::kSpecialNames[special].size();
    tokenizer.AppendText(text.substr(0, bracket));
    tokenizer.AppendSpecial(vocabulary.specials[special], static_cast<int64_t>(size));
    text.remove_prefix(bracket + size);
    bracket = text.find('[');
  }
  tokenizer.AppendText(text);
  return std::move(tokenizer).Finish();
}

int32_t WordPieceTokenizer::Find(std::string_view token) const {
  return impl_->vocabulary.Find(token, false);
}

const std::string& WordPieceTokenizer::Token(int32_t id) const {
  static const std::string* const none = new std::string();
  const std::vector<std::string>& tokens = impl_->vocabulary.tokens;
  return id < 0 || static_cast<size_t>(id) >= tokens.size() ? *none : tokens[id];
}

std::string WordPieceTokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  bool first = true;
  for (const int32_t id : ids) {
    std::string_view token = Token(id);
    if (token.empty() || (skip_special && IsSpecial(id))) continue;
    if (first) {
      first = false;
    } else if (token.starts_with("##")) {
      token.remove_prefix(2);
    } else if (!AttachesToTheWordBefore(token)) {
      text += ' ';
    }
    text += token;
  }
  return text;
}

}  // namespace hippodrome
