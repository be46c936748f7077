#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/wordpiece.h"
#include "kernels/cpu/base/thread_pool.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/commands/commands.h"
#include "tools/convert/staged_directory.h"
#include "tools/evaluate/data_file.h"
#include "tools/train/data/encode_text.h"
#include "tools/train/data/tokenized_text.h"
#include "tools/train/tokenizer/train_bpe.h"
#include "tools/train/tokenizer/train_wordpiece.h"
#include "tools/train/tokenizer/word_counts.h"

namespace hippodrome {
namespace {

const CommandSpec kEncodeSpec = {
    .usage =
        "usage: hippodrome tokenizer encode --tokenizer DIR --input FILE... --output FILE\n"
        "  [--threads N]\n"
        "Writes the token ids of UTF-8 texts, which may be packed by gzip, for training. DIR\n"
        "has vocab.json and merges.txt, or vocab.txt. A document ends at <|endoftext|> in the\n"
        "text and at the end of a file. Repeat --input for each file.",
    .values = {"tokenizer", "input", "output", "threads"},
    .positional = 1};

// One of the two.
struct Tokenizer {
  std::unique_ptr<BpeTokenizer> bpe;
  std::unique_ptr<WordPieceTokenizer> wordpiece;
};

absl::StatusOr<Tokenizer> ReadTokenizer(const std::string& directory) {
  Tokenizer tokenizer;
  if (std::filesystem::exists(directory + "/vocab.txt")) {
    HIPPODROME_ASSIGN_OR_RETURN(tokenizer.wordpiece, WordPieceTokenizer::Read(directory));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(tokenizer.bpe, BpeTokenizer::Read(directory));
  }
  return tokenizer;
}

TokenizedText NoText(const Tokenizer& tokenizer) {
  return tokenizer.bpe != nullptr
             ? TokenizedText{.kind = TokenizerKind::kBpe, .vocab_size = tokenizer.bpe->vocab_size()}
             : TokenizedText{.kind = TokenizerKind::kWordPiece,
                             .vocab_size = tokenizer.wordpiece->vocab_size()};
}

absl::Status AppendFile(const Tokenizer& tokenizer, const std::string& path, ThreadPool& pool,
                        TokenizedText& tokens) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  Progress bar("encoding " + path);
  const auto progress = [&](int64_t done, int64_t total) { bar.Update(done, total); };
  if (tokenizer.bpe != nullptr) return AppendText(*tokenizer.bpe, text, pool, progress, tokens);
  AppendText(*tokenizer.wordpiece, text, pool, progress, tokens);
  return absl::OkStatus();
}

absl::Status Encode(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("tokenizer"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string output, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  const std::vector<std::string> inputs = line.All("input");
  if (inputs.empty()) return Usage("--input is missing");
  HIPPODROME_ASSIGN_OR_RETURN(const Tokenizer tokenizer, ReadTokenizer(directory));
  TokenizedText tokens = NoText(tokenizer);
  ThreadPool pool(threads);
  for (const std::string& input : inputs) {
    HIPPODROME_RETURN_IF_ERROR(AppendFile(tokenizer, input, pool, tokens));
  }
  if (tokens.tokens.empty()) return InvalidArgument("there is no text in the input");
  HIPPODROME_RETURN_IF_ERROR(WriteTokenFile(output, tokens));
  std::printf("%zu tokens\n", tokens.tokens.size());
  return absl::OkStatus();
}

const CommandSpec kTrainSpec = {
    .usage =
        "usage: hippodrome tokenizer train --kind bpe|wordpiece --vocab N --input FILE...\n"
        "  --out DIR\n"
        "Makes a tokenizer of N tokens from UTF-8 texts, which may be packed by gzip: byte-level\n"
        "byte-pair encoding (vocab.json and merges.txt, for decoders) or uncased WordPiece\n"
        "(vocab.txt, for encoders). Repeat --input for each file.",
    .values = {"kind", "vocab", "input", "out"},
    .positional = 1};

absl::StatusOr<WordCounts> CountWords(const std::vector<std::string>& inputs, TokenizerKind kind) {
  WordCounts counts;
  for (const std::string& input : inputs) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(input));
    kind == TokenizerKind::kBpe ? CountGpt2Words(text, counts) : CountBertWords(text, counts);
  }
  return counts;
}

// The files of the tokenizer, as names and texts.
using Files = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Files> TrainFiles(const WordCounts& counts, TokenizerKind kind, int64_t vocab_size) {
  Progress bar("finding tokens");
  const auto progress = [&](int64_t done, int64_t total) { bar.Update(done, total); };
  if (kind == TokenizerKind::kBpe) {
    HIPPODROME_ASSIGN_OR_RETURN(BpeFiles files, TrainBpe(counts, vocab_size, progress));
    return Files{{"vocab.json", std::move(files.vocab_json)},
                 {"merges.txt", std::move(files.merges)}};
  }
  HIPPODROME_ASSIGN_OR_RETURN(std::string vocab, TrainWordPiece(counts, vocab_size, progress));
  return Files{{"vocab.txt", std::move(vocab)}};
}

absl::Status WriteFiles(const std::string& directory, const Files& files) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto staged, StagedDirectory::Create(directory));
  for (const auto& [name, text] : files) {
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(staged->Add(name), text));
  }
  return staged->Publish();
}

absl::Status Train(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string out, line.Required("out"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Required("kind"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t vocab_size, line.Integer("vocab", 0, 1, 1 << 24));
  const std::vector<std::string> inputs = line.All("input");
  if (inputs.empty()) return Usage("--input is missing");
  if (!line.Has("vocab")) return Usage("--vocab is missing");
  if (name != "bpe" && name != "wordpiece") {
    return Usage("--kind is '" + name + "'; expected bpe or wordpiece");
  }
  const TokenizerKind kind = name == "bpe" ? TokenizerKind::kBpe : TokenizerKind::kWordPiece;
  HIPPODROME_ASSIGN_OR_RETURN(const WordCounts counts, CountWords(inputs, kind));
  HIPPODROME_ASSIGN_OR_RETURN(const Files files, TrainFiles(counts, kind, vocab_size));
  return WriteFiles(out, files);
}

const CommandSpec kTokenizerSpec = {
    .usage =
        "usage: hippodrome tokenizer COMMAND [options]   (COMMAND --help says more)\n"
        "  train    a tokenizer from texts\n"
        "  encode   token ids of texts, for training"};

}  // namespace

int TokenizerCommand(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "train") return RunCommand(argc, argv, kTrainSpec, Train);
  if (command == "encode") return RunCommand(argc, argv, kEncodeSpec, Encode);
  if (AsksForHelp(argc, argv)) return PrintUsage(kTokenizerSpec);
  return UsageError(kTokenizerSpec, Usage(command.empty() ? "no command is given"
                                                          : "unknown command '" + command + "'"));
}

}  // namespace hippodrome
