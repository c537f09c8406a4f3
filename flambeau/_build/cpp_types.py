"""How the types of the table's language are spelled in C++."""

from __future__ import annotations

from .._ir.types import Type

#: subset type -> (C++ parameter type, C++ value type); optional forms are derived
CPP_TYPES = {
    "Tensor": ("const Tensor&", "Tensor"),
    "Tensors": ("const std::vector<Tensor>&", "std::vector<Tensor>"),
    "OptTensors": ("const std::vector<OptTensor>&", "std::vector<OptTensor>"),
    "int": ("int64_t", "int64_t"),
    "float": ("double", "double"),
    "bool": ("bool", "bool"),
    "str": ("const std::string&", "std::string"),
    "Number": ("const Scalar&", "Scalar"),
    "Ints": ("const Ints&", "Ints"),
    "Floats": ("const std::vector<double>&", "std::vector<double>"),
    "Bools": ("const std::vector<bool>&", "std::vector<bool>"),
    "Numbers": ("const std::vector<Scalar>&", "std::vector<Scalar>"),
    "DType": ("DType", "DType"),
    "Device": ("Device", "Device"),
    "Layout": ("Layout", "Layout"),
    "MemoryFormat": ("MemoryFormat", "MemoryFormat"),
    "Generator": ("const Generator&", "Generator"),
    "None": ("void", "void"),
}


def cpp_value(t: Type) -> str:
    """C++ type of a local or a result of subset type `t`."""
    if t.base == "Tuple":
        return f"std::tuple<{', '.join(cpp_value(i) for i in t.items)}>"
    value = f"std::vector<{cpp_value(t.items[0])}>" if t.base == "List" else CPP_TYPES[t.base][1]
    return f"std::optional<{value}>" if t.optional else value


def cpp_param(t: Type) -> str:
    """C++ type of a parameter of subset type `t`."""
    if not t.optional:
        return CPP_TYPES[t.base][0]
    value = cpp_value(t)
    by_value = t.base in ("int", "float", "bool", "DType", "Device", "Layout", "MemoryFormat")
    return value if by_value else f"const {value}&"
