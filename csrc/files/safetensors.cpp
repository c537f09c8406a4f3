#include "files/safetensors.h"

#include <algorithm>

#include "core/error.h"
#include "files/json.h"

namespace flambeau::files {

namespace {

using Kind = Json::Kind;
constexpr size_t kMostDims = 64;

struct Width {
  const char* name;
  int bits;
};
constexpr Width kWidths[] = {{"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
                             {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
                             {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
                             {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
                             {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},
                             {"I64", 64},    {"U64", 64}};

const char* kind_name(Kind k) {
  constexpr const char* names[] = {"None", "bool", "int", "float", "str", "list", "dict"};
  return names[static_cast<int>(k)];
}

// The numbers of a list of whole numbers that are not negative; nothing for others.
std::optional<std::vector<int64_t>> counts(const Json& given) {
  if (!given.is(Kind::List)) return {};
  std::vector<int64_t> out;
  for (const Json& n : given.items) {
    if (!n.is(Kind::Integer) || n.integer < 0) return {};
    out.push_back(n.integer);
  }
  return out;
}

SafeTensor tensor_of(const std::string& name, const Json& fields) {
  const std::string shown = "tensor '" + name.substr(0, 80) + "'";
  const Json *dtype = fields.find("dtype"), *shape = fields.find("shape"),
             *offsets = fields.find("data_offsets");
  FB_CHECK_VALUE(fields.is(Kind::Object) && dtype && shape && offsets, shown,
                 " needs data_offsets, dtype, shape");
  const std::string word = dtype->is(Kind::Text)      ? dtype->text
                           : dtype->is(Kind::Integer) ? std::to_string(dtype->integer)
                                                      : kind_name(dtype->kind);
  const auto* width = std::find_if(std::begin(kWidths), std::end(kWidths), [&](const Width& w) {
    return dtype->is(Kind::Text) && word == w.name;
  });
  FB_CHECK_VALUE(width != std::end(kWidths), shown, " has the unknown dtype '", word.substr(0, 40),
                 "'");
  const auto sizes = counts(*shape), places = counts(*offsets);
  FB_CHECK_VALUE(sizes && sizes->size() <= kMostDims, "the shape of ", shown, " should be at most ",
                 kMostDims, " counts");
  FB_CHECK_VALUE(places && places->size() == 2 && (*places)[0] <= (*places)[1],
                 "the data_offsets of ", shown, " should be where it begins and ends");
  const int64_t start = (*places)[0], stop = (*places)[1];
  // A size of 0 makes all others count for nothing.
  int64_t bits = std::count(sizes->begin(), sizes->end(), 0) ? 0 : width->bits;
  bool fits = true;
  for (int64_t n : *sizes) fits = fits && (bits == 0 || !__builtin_mul_overflow(bits, n, &bits));
  const int64_t given = stop - start;
  FB_CHECK_VALUE(fits && given <= INT64_MAX / 8 && bits == 8 * given, shown, " of shape ",
                 Ints(sizes->begin(), sizes->end()), " and dtype ", word, " needs ",
                 fits ? std::to_string((bits + 7) / 8) : "too many",
                 " bytes, its data_offsets give it ", given);
  return {name, word, *sizes, start, stop};
}

}  // namespace

SafeHeader read_safetensors_header(std::string_view header, uint64_t size) {
  Json fields;
  FB_CHECK_VALUE(is_utf8(header), "the header is not UTF-8");
  try {
    fields = parse_json(header);
  } catch (const Error& e) {
    const std::string_view why = e.what();
    const bool twice = why.starts_with("names ");
    FB_CHECK_VALUE(!twice, "the header ", why);
    fail(ErrorKind::Value, "the header is not valid JSON (", why, ")");
  }
  FB_CHECK_VALUE(fields.is(Kind::Object), "the header is a ", kind_name(fields.kind),
                 ", not a dict");
  SafeHeader out;
  for (size_t k = 0; k < fields.names.size(); ++k) {
    const Json& value = fields.items[k];
    if (fields.names[k] != "__metadata__") {
      out.tensors.push_back(tensor_of(fields.names[k], value));
      continue;
    }
    if (value.is(Kind::Null)) continue;
    const bool texts =
        value.is(Kind::Object) && std::all_of(value.items.begin(), value.items.end(),
                                              [](const Json& v) { return v.is(Kind::Text); });
    FB_CHECK_VALUE(texts, "__metadata__ should be a dict from text to text");
    out.metadata.emplace();
    for (size_t j = 0; j < value.names.size(); ++j)
      out.metadata->emplace_back(value.names[j], value.items[j].text);
  }
  std::sort(out.tensors.begin(), out.tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::pair(a.start, a.stop) < std::pair(b.start, b.stop);
  });
  int64_t at = 0;
  for (const SafeTensor& t : out.tensors) {
    FB_CHECK_VALUE(t.start == at, "tensor '", t.name.substr(0, 80), "' begins at byte ", t.start,
                   " of the data, expected ", at, ": it ",
                   t.start < at ? "overlaps the one before" : "leaves a gap before it");
    at = t.stop;
  }
  FB_CHECK_VALUE(static_cast<uint64_t>(at) == size, "the tensors have ", at,
                 " bytes, the file holds ", size, " for them");
  return out;
}

}  // namespace flambeau::files
