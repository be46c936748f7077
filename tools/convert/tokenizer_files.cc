#include "tools/convert/tokenizer_files.h"

#include <filesystem>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/wordpiece.h"

namespace hippodrome {
namespace {

constexpr size_t kLargestFile = size_t{64} << 20;

struct Pair {
  const char* vocab;
  const char* merges;
};
constexpr Pair kPairs[] = {{"vocab.json", "merges.txt"}, {"gpt2-encoder.json", "gpt2-vocab.bpe"}};
constexpr const char* kWordPieces[] = {"vocab.txt", "bert-base-uncased-vocab.txt"};

// `tokenizer`: what parsing the files of `directory` gave.
template <typename Tokenizer>
absl::Status CheckTokenizer(const absl::StatusOr<std::unique_ptr<Tokenizer>>& tokenizer,
                            const std::string& directory, int64_t vocab_size) {
  if (!tokenizer.ok()) {
    return InvalidArgument("tokenizer " + directory + ": " + Message(tokenizer.status()));
  }
  const int64_t tokens = (*tokenizer)->vocab_size();
  if (tokens <= vocab_size) return absl::OkStatus();
  return InvalidArgument("tokenizer " + directory + " has " + std::to_string(tokens) +
                         " tokens; the model's vocabulary has " + std::to_string(vocab_size));
}

}  // namespace

absl::StatusOr<std::vector<TextFile>> ReadBpeFiles(const std::string& directory,
                                                   int64_t vocab_size) {
  for (const Pair& pair : kPairs) {
    const std::string path = directory + "/" + pair.vocab;
    if (!std::filesystem::exists(path)) continue;
    HIPPODROME_ASSIGN_OR_RETURN(const std::string vocab, ReadSmallFile(path, kLargestFile));
    HIPPODROME_ASSIGN_OR_RETURN(const std::string merges,
                                ReadSmallFile(directory + "/" + pair.merges, kLargestFile));
    HIPPODROME_RETURN_IF_ERROR(
        CheckTokenizer(BpeTokenizer::Parse(vocab, merges), directory, vocab_size));
    return std::vector<TextFile>{{"vocab.json", vocab}, {"merges.txt", merges}};
  }
  return NotFound("no tokenizer in " + directory +
                  "; expected vocab.json and merges.txt, or gpt2-encoder.json and gpt2-vocab.bpe");
}

absl::StatusOr<std::vector<TextFile>> ReadWordPieceFiles(const std::string& directory,
                                                         int64_t vocab_size) {
  for (const char* name : kWordPieces) {
    const std::string path = directory + "/" + name;
    if (!std::filesystem::exists(path)) continue;
    HIPPODROME_ASSIGN_OR_RETURN(const std::string vocab, ReadSmallFile(path, kLargestFile));
    HIPPODROME_RETURN_IF_ERROR(
        CheckTokenizer(WordPieceTokenizer::Parse(vocab), directory, vocab_size));
    return std::vector<TextFile>{{"vocab.txt", vocab}};
  }
  return NotFound("no tokenizer in " + directory +
                  "; expected vocab.txt or bert-base-uncased-vocab.txt");
}

}  // namespace hippodrome
