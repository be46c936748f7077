#include "tools/train/data/tokenized_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {
namespace {

constexpr const char* kKindNames[] = {"bpe", "wordpiece"};
constexpr int64_t kMostTokensInVocabulary = 1 << 24;

const char* KindName(TokenizerKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

template <typename T>
absl::StatusOr<std::vector<T>> ReadVector(const SafetensorsFile& file, const std::string& name,
                                          DType dtype) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) return InvalidArgument("there is no tensor '" + name + "'");
  if (tensor->dtype != dtype || tensor->shape.size() != 1) {
    return InvalidArgument("the tensor '" + name + "' is not a row of " + Name(dtype));
  }
  std::vector<T> values(static_cast<size_t>(tensor->elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
  return values;
}

absl::StatusOr<std::string> Metadata(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  if (found != file.metadata().end()) return found->second;
  return InvalidArgument("the metadata have no '" + name + "': expected a file of token ids");
}

absl::StatusOr<TokenizerKind> ReadKind(const SafetensorsFile& file) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, Metadata(file, "tokenizer"));
  for (const TokenizerKind kind : {TokenizerKind::kBpe, TokenizerKind::kWordPiece}) {
    if (name == KindName(kind)) return kind;
  }
  return InvalidArgument("the tokenizer is '" + OneLine(name) + "', expected bpe or wordpiece");
}

absl::StatusOr<int64_t> ReadVocabSize(const SafetensorsFile& file) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Metadata(file, "vocab_size"));
  int64_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  if (error == std::errc() && stop == end && size > 0 && size <= kMostTokensInVocabulary) {
    return size;
  }
  return InvalidArgument("vocab_size is '" + OneLine(text) + "', expected 1 to 2^24");
}

absl::Status CheckTokens(const TokenizedText& text) {
  if (text.tokens.empty()) return InvalidArgument("there are no tokens");
  const auto [least, most] = std::minmax_element(text.tokens.begin(), text.tokens.end());
  if (*least >= 0 && *most < text.vocab_size) return absl::OkStatus();
  return InvalidArgument("there is a token " + std::to_string(*least < 0 ? *least : *most) +
                         ", expected 0 to " + std::to_string(text.vocab_size - 1));
}

// Whether `ends` rise from above 0 to `last`.
absl::Status CheckEnds(const std::string& name, const std::vector<int64_t>& ends, int64_t last) {
  const bool rise =
      std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) == ends.end();
  if (rise && !ends.empty() && ends.front() > 0 && ends.back() == last) return absl::OkStatus();
  return InvalidArgument("'" + name + "' does not rise from above 0 to " + std::to_string(last));
}

absl::StatusOr<TokenizedText> ReadText(const SafetensorsFile& file) {
  TokenizedText text;
  HIPPODROME_ASSIGN_OR_RETURN(text.kind, ReadKind(file));
  HIPPODROME_ASSIGN_OR_RETURN(text.vocab_size, ReadVocabSize(file));
  HIPPODROME_ASSIGN_OR_RETURN(text.tokens, ReadVector<int32_t>(file, "tokens", DType::kI32));
  HIPPODROME_RETURN_IF_ERROR(CheckTokens(text));
  if (text.kind == TokenizerKind::kBpe) return text;
  HIPPODROME_ASSIGN_OR_RETURN(text.sentence_ends,
                              ReadVector<int64_t>(file, "sentence_ends", DType::kI64));
  HIPPODROME_ASSIGN_OR_RETURN(text.document_ends,
                              ReadVector<int64_t>(file, "document_ends", DType::kI64));
  HIPPODROME_RETURN_IF_ERROR(
      CheckEnds("sentence_ends", text.sentence_ends, std::ssize(text.tokens)));
  HIPPODROME_RETURN_IF_ERROR(
      CheckEnds("document_ends", text.document_ends, std::ssize(text.sentence_ends)));
  return text;
}

void AppendShifted(const std::vector<int64_t>& ends, int64_t shift, std::vector<int64_t>& all) {
  for (const int64_t end : ends) all.push_back(end + shift);
}

absl::Status Append(const TokenizedText& text, TokenizedText& all) {
  if (text.kind != all.kind || text.vocab_size != all.vocab_size) {
    return InvalidArgument(std::string("has ") + std::to_string(text.vocab_size) + " tokens of " +
                           KindName(text.kind) + ", the files before have " +
                           std::to_string(all.vocab_size) + " of " + KindName(all.kind));
  }
  AppendShifted(text.document_ends, std::ssize(all.sentence_ends), all.document_ends);
  AppendShifted(text.sentence_ends, std::ssize(all.tokens), all.sentence_ends);
  all.tokens.insert(all.tokens.end(), text.tokens.begin(), text.tokens.end());
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTokenFile(const std::string& path, const TokenizedText& text) {
  std::vector<TensorSpec> specs = {{"tokens", DType::kI32, {std::ssize(text.tokens)}}};
  if (text.kind == TokenizerKind::kWordPiece) {
    specs.push_back({"sentence_ends", DType::kI64, {std::ssize(text.sentence_ends)}});
    specs.push_back({"document_ends", DType::kI64, {std::ssize(text.document_ends)}});
  }
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto writer,
      SafetensorsWriter::Create(
          path, specs,
          {{"tokenizer", KindName(text.kind)}, {"vocab_size", std::to_string(text.vocab_size)}}));
  HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(text.tokens))));
  if (text.kind == TokenizerKind::kWordPiece) {
    HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(text.sentence_ends))));
    HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(text.document_ends))));
  }
  return writer->Finish();
}

absl::StatusOr<TokenizedText> ReadTokenFiles(const std::vector<std::string>& paths) {
  TokenizedText all;
  for (const std::string& path : paths) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
    absl::StatusOr<TokenizedText> text = ReadText(*file);
    absl::Status status = text.status();
    if (status.ok() && all.tokens.empty()) {
      all = *std::move(text);
    } else if (status.ok()) {
      status = Append(*text, all);
    }
    if (!status.ok()) return InvalidArgument(path + ": " + Message(status));
  }
  if (all.tokens.empty()) return InvalidArgument("no file of token ids is given");
  return all;
}

}  // namespace hippodrome
