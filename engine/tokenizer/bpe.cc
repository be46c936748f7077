#include "engine/tokenizer/bpe.h"

#include <string_view>
#include <utility>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/tokenizer/bpe_merger.h"
#include "engine/tokenizer/bpe_vocabulary.h"
#include "engine/tokenizer/gpt2_split.h"

namespace hippodrome {

struct BpeTokenizer::Impl {
  BpeVocabulary vocabulary;
};

BpeTokenizer::BpeTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BpeTokenizer::~BpeTokenizer() = default;

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Parse(const std::string& vocab_json,
                                                                  const std::string& merges) {
  HIPPODROME_ASSIGN_OR_RETURN(BpeVocabulary vocabulary, ParseBpeVocabulary(vocab_json, merges));
  auto impl = std::make_unique<Impl>(Impl{std::move(vocabulary)});
  return std::unique_ptr<BpeTokenizer>(new BpeTokenizer(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Read(const std::string& directory) {
  constexpr size_t kLargestFile = size_t{16} << 20;
  const auto vocab = ReadSmallFile(directory + "/vocab.json", kLargestFile);
  const auto merges = ReadSmallFile(directory + "/merges.txt", kLargestFile);
  if (absl::IsNotFound(vocab.status()) && absl::IsNotFound(merges.status())) {
    return NotFound(directory + " has neither vocab.json nor merges.txt");
  }
  for (const absl::Status& status : {vocab.status(), merges.status()}) {
    if (!status.ok()) return InvalidArgument(Message(status));
  }
  auto tokenizer = Parse(*vocab, *merges);
  if (!tokenizer.ok()) return InvalidArgument(directory + "/" + Message(tokenizer.status()));
  return tokenizer;
}

int64_t BpeTokenizer::vocab_size() const {
  return static_cast<int64_t>(impl_->vocabulary.tokens.size());
}

int32_t BpeTokenizer::end_of_text() const { return impl_->vocabulary.end_of_text; }

std::vector<int32_t> BpeTokenizer::Encode(const std::string& text) const {
  BpeMerger merger(impl_->vocabulary);
  std::vector<int32_t> ids;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t length = FirstWordLength(rest);
    merger.Append(rest.substr(0, length), ids);
    rest.remove_prefix(length);
  }
  return ids;
}

const std::string& BpeTokenizer::Bytes(int32_t id) const {
  static const std::string* const none = new std::string();
  const std::vector<std::string>& tokens = impl_->vocabulary.tokens;
  return id < 0 || static_cast<size_t>(id) >= tokens.size() ? *none : tokens[id];
}

std::string BpeTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += Bytes(id);
  return bytes;
}

}  // namespace hippodrome
