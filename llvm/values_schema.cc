// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An LLVM pass plugin that writes the schema of `whylate values schema` from source (vProf §3.1): globals of basic
 * type, and locals that a loop changes and tests (loop), that a branch tests (cond), that a call is given (args).
 *
 *   WHYLATE_SCHEMA=FILE clang -g -O2 -fpass-plugin=whylate-values-schema.so -c x.c
 *
 * Each compilation appends its lines: file, function, line, variable, type, tags.  The pass runs before all others,
 * when each local still lies in memory of its own; it changes nothing.
 */
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugProgramInstruction.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <set>
#include <string>
#include <unistd.h>

using namespace llvm;

namespace
{

enum Tag { TAG_GLOBAL = 1, TAG_LOOP = 2, TAG_COND = 4, TAG_ARGS = 8 };

constexpr int TYPE_DEPTH_MAX = 32, TRACE_DEPTH_MAX = 32;

/* Declared in a scope: where it is declared, and its name (`p->len` of a member). */
struct Key {
	const DIVariable *variable;
	std::string name;

	bool operator<(const Key &other) const
	{
		return std::tie(variable, name) < std::tie(other.variable, other.name);
	}
};

struct Found {
	std::string type;
	unsigned tags = 0;
};

/* The type behind typedefs and qualifiers. */
const DIType *plain(const DIType *type)
{
	for (int depth = 0; depth < TYPE_DEPTH_MAX; depth++) {
		const auto *derived = dyn_cast_or_null<DIDerivedType>(type);

		if (!derived)
			return type;
		switch (derived->getTag()) {
		case dwarf::DW_TAG_typedef:
		case dwarf::DW_TAG_const_type:
		case dwarf::DW_TAG_volatile_type:
		case dwarf::DW_TAG_restrict_type:
		case dwarf::DW_TAG_atomic_type:
			type = derived->getBaseType();
			continue;
		default:
			return type;
		}
	}
	return nullptr;
}

const DIType *pointed_to(const DIType *type)
{
	const auto *derived = dyn_cast_or_null<DIDerivedType>(plain(type));

	if (!derived ||
	    (derived->getTag() != dwarf::DW_TAG_pointer_type && derived->getTag() != dwarf::DW_TAG_reference_type &&
	     derived->getTag() != dwarf::DW_TAG_rvalue_reference_type))
		return nullptr;
	return derived->getBaseType();
}

bool is_pointer(const DIType *type)
{
	const auto *derived = dyn_cast_or_null<DIDerivedType>(plain(type));

	return derived &&
	       (derived->getTag() == dwarf::DW_TAG_pointer_type || derived->getTag() == dwarf::DW_TAG_reference_type ||
		derived->getTag() == dwarf::DW_TAG_rvalue_reference_type);
}

/* The struct's own type; null: another kind. */
const DICompositeType *struct_of(const DIType *type)
{
	const auto *composite = dyn_cast_or_null<DICompositeType>(plain(type));

	return composite && (composite->getTag() == dwarf::DW_TAG_structure_type ||
			     composite->getTag() == dwarf::DW_TAG_class_type)
		       ? composite
		       : nullptr;
}

/* Integers, enumerations, booleans, floats of up to 8 bytes, and pointers. */
bool is_basic(const DIType *type)
{
	const DIType *of = plain(type);
	const auto *composite = dyn_cast_or_null<DICompositeType>(of);

	if (!of || is_pointer(of))
		return of != nullptr;
	if (composite && composite->getTag() != dwarf::DW_TAG_enumeration_type)
		return false;
	if (!composite && !isa<DIBasicType>(of))
		return false;
	return of->getSizeInBits() >= 8 && of->getSizeInBits() <= 64;
}

std::string type_name(const DIType *type)
{
	for (int depth = 0; type && depth < TYPE_DEPTH_MAX; depth++) {
		const auto *derived = dyn_cast<DIDerivedType>(type);

		if (is_pointer(type) && type->getName().empty())
			return (derived->getBaseType() ? type_name(derived->getBaseType()) : std::string("void")) +
			       " *";
		if (!type->getName().empty() || !derived)
			return type->getName().str();
		type = derived->getBaseType();
	}
	return "";
}

const DIDerivedType *member_at(const DICompositeType *composite, uint64_t off)
{
	for (const DINode *element : composite->getElements()) {
		const auto *member = dyn_cast<DIDerivedType>(element);

		if (member && member->getTag() == dwarf::DW_TAG_member && !member->isBitField() &&
		    !member->isStaticMember() && member->getOffsetInBits() == 8 * off && !member->getName().empty())
			return member;
	}
	return nullptr;
}

class Function_schema
{
      public:
	Function_schema(Function &function, FunctionAnalysisManager &analyses)
	    : layout(function.getParent()->getDataLayout())
	{
		find_locals(function);
		for (Instruction &instruction : instructions(function)) {
			if (auto *branch = dyn_cast<BranchInst>(&instruction)) {
				if (branch->isConditional())
					trace(branch->getCondition(), TAG_COND, nullptr, 0);
			} else if (auto *choice = dyn_cast<SwitchInst>(&instruction)) {
				trace(choice->getCondition(), TAG_COND, nullptr, 0);
			} else if (auto *select = dyn_cast<SelectInst>(&instruction)) {
				trace(select->getCondition(), TAG_COND, nullptr, 0);
			} else if (auto *call = dyn_cast<CallBase>(&instruction)) {
				if (!isa<IntrinsicInst>(call))
					for (Use &argument : call->args())
						trace(argument.get(), TAG_ARGS, nullptr, 0);
			}
		}
		for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
			take_loop(*loop);
	}

	std::map<Key, Found> found;

      private:
	const DataLayout &layout;
	std::map<const Value *, const DILocalVariable *> locals;

	void find_locals(Function &function)
	{
		for (Instruction &instruction : instructions(function)) {
			/* Clang's optimizing pipeline has made assignments of the declarations by now. */
			for (DbgVariableRecord &record : filterDbgVars(instruction.getDbgRecordRange())) {
				Value *address = record.isDbgAssign()    ? record.getAddress()
						 : record.isDbgDeclare() ? record.getVariableLocationOp(0)
									 : nullptr;

				if (address)
					locals[address] = record.getVariable();
			}
		}
	}

	/* What lies at the address: a local, or a member of the struct that a local points to. */
	bool variable_at(const Value *address, Key *key, const DIType **type, const Value **place)
	{
		APInt off(layout.getIndexTypeSizeInBits(address->getType()), 0);
		const Value *base = address->stripAndAccumulateConstantOffsets(layout, off, true);
		auto local = locals.find(base);
		const LoadInst *pointer;
		const DICompositeType *composite;
		const DIDerivedType *member;

		if (local != locals.end() && off.isZero()) {
			*key = {local->second, local->second->getName().str()};
			*type = local->second->getType();
			*place = base;
			return true;
		}
		pointer = dyn_cast<LoadInst>(base);
		local = pointer ? locals.find(pointer->getPointerOperand()) : locals.end();
		if (local == locals.end() || off.isNegative())
			return false;
		composite = struct_of(pointed_to(local->second->getType()));
		member = composite ? member_at(composite, off.getZExtValue()) : nullptr;
		if (!member)
			return false;
		*key = {local->second, local->second->getName().str() + "->" + member->getName().str()};
		*type = member->getBaseType();
		*place = pointer->getPointerOperand();
		return true;
	}

	/* The variables that a value is computed from; with a loop: those that it also changes. */
	void trace(Value *value, unsigned tag, const Loop *loop, int depth)
	{
		auto *instruction = dyn_cast<Instruction>(value);
		const DIType *type;
		const Value *place;
		Key key;

		if (!instruction || depth > TRACE_DEPTH_MAX || isa<CallBase>(instruction) ||
		    isa<AllocaInst>(instruction))
			return;
		if (auto *load = dyn_cast<LoadInst>(instruction)) {
			if (!variable_at(load->getPointerOperand(), &key, &type, &place)) {
				/* An element of an array, or two pointers away: the index and the pointer. */
				if (tag == TAG_COND)
					trace(load->getPointerOperand(), tag, loop, depth + 1);
				return;
			}
			if (!is_basic(type) || (loop && !is_changed(*loop, load->getPointerOperand())))
				return;
			found[key].type = type_name(type);
			found[key].tags |= tag;
			return;
		}
		for (Use &operand : instruction->operands())
			if (!isa<BasicBlock>(operand.get()))
				trace(operand.get(), tag, loop, depth + 1);
	}

	bool is_changed(const Loop &loop, const Value *address)
	{
		const DIType *type;
		const Value *place, *stored;
		Key wanted, key;

		if (!variable_at(address, &wanted, &type, &place))
			return false;
		for (const BasicBlock *block : loop.blocks())
			for (const Instruction &instruction : *block)
				if (auto *store = dyn_cast<StoreInst>(&instruction))
					if (variable_at(store->getPointerOperand(), &key, &type, &stored) &&
					    key.variable == wanted.variable && key.name == wanted.name)
						return true;
		return false;
	}

	void take_loop(const Loop &loop)
	{
		SmallVector<BasicBlock *, 8> exiting;

		loop.getExitingBlocks(exiting);
		for (BasicBlock *block : exiting) {
			Instruction *end = block->getTerminator();

			if (auto *branch = dyn_cast<BranchInst>(end)) {
				if (branch->isConditional())
					trace(branch->getCondition(), TAG_LOOP, &loop, 0);
			} else if (auto *choice = dyn_cast<SwitchInst>(end)) {
				trace(choice->getCondition(), TAG_LOOP, &loop, 0);
			}
		}
	}
};

struct Values_schema : PassInfoMixin<Values_schema> {
	static bool isRequired()
	{
		return true;
	}

	PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses)
	{
		auto &of_functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
		std::set<std::string> lines;
		const char *path = getenv("WHYLATE_SCHEMA");

		if (!path)
			return PreservedAnalyses::all();
		for (GlobalVariable &global : module.globals())
			take_global(global, lines);
		for (Function &function : module) {
			if (function.isDeclaration() || !function.getSubprogram())
				continue;
			Function_schema schema(function, of_functions);

			for (const auto &[key, of] : schema.found)
				add(lines, key.variable->getFilename(), function.getSubprogram()->getName(),
				    key.variable->getLine(), key.name, of.type, of.tags);
		}
		append(path, lines);
		return PreservedAnalyses::all();
	}

      private:
	static void add(std::set<std::string> &lines, StringRef file, StringRef function, unsigned line,
			const std::string &name, const std::string &type, unsigned tags)
	{
		static const struct {
			unsigned tag;
			const char *name;
		} names[] = {{TAG_GLOBAL, "global"}, {TAG_LOOP, "loop"}, {TAG_COND, "cond"}, {TAG_ARGS, "args"}};
		std::string text;

		for (const auto &of : names)
			if (tags & of.tag)
				text += (text.empty() ? "" : "|") + std::string(of.name);
		lines.insert(
			(file + ", " + function + ", " + Twine(line) + ", " + name + ", " + type + ", " + text + "\n")
				.str());
	}

	static void take_global(GlobalVariable &global, std::set<std::string> &lines)
	{
		SmallVector<DIGlobalVariableExpression *, 1> expressions;

		global.getDebugInfo(expressions);
		for (DIGlobalVariableExpression *expression : expressions) {
			const DIGlobalVariable *of = expression->getVariable();
			const DICompositeType *composite = struct_of(of->getType());

			if (global.isDeclaration() || of->getName().empty())
				continue;
			if (is_basic(of->getType()))
				add(lines, of->getFilename(), "#global", of->getLine(), of->getName().str(),
				    type_name(of->getType()), TAG_GLOBAL);
			for (const DINode *element : composite ? composite->getElements() : DINodeArray()) {
				const auto *member = dyn_cast<DIDerivedType>(element);

				if (member && member->getTag() == dwarf::DW_TAG_member && !member->isBitField() &&
				    !member->isStaticMember() && !member->getName().empty() &&
				    is_basic(member->getBaseType()) && !is_pointer(member->getBaseType()))
					add(lines, of->getFilename(), "#global", of->getLine(),
					    (of->getName() + "." + member->getName()).str(),
					    type_name(member->getBaseType()), TAG_GLOBAL);
			}
		}
	}

	/* One write a module: compilers that run side by side append whole lines. */
	static void append(const char *path, const std::set<std::string> &lines)
	{
		int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		std::string text;

		for (const std::string &line : lines)
			text += line;
		if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
			errs() << "whylate: cannot write the schema to '" << path << "'\n";
		if (fd >= 0)
			close(fd);
	}
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "whylate-values-schema", "1", [](PassBuilder &builder) {
			builder.registerPipelineStartEPCallback([](ModulePassManager &manager, OptimizationLevel) {
				manager.addPass(Values_schema());
			});
		}};
}
