//! Keeps what is converted within what the compiler itself can take: it gives up
//! on an intersection of unions whose product is too large. Looks through named
//! types, which is why it runs last.

use super::convert::Converted;
use super::ty::Ty;
use std::collections::HashMap;

/// tsc refuses products of 100,000 members (error 2590); checking gets slow long before.
const PRODUCT: u64 = 5_000;

/// How many names deep the size of a union is followed.
const DEPTH: usize = 8;

/// Drops the parts of intersections that make them too large.
pub fn tame(converted: &mut Converted) {
    // Most documents have no intersection at all.
    let mut any = false;
    for ty in converted.defs.iter().map(|d| &d.ty).chain([&converted.ty]) {
        ty.visit(&mut |t| any |= matches!(t, Ty::Intersection(_)));
    }
    if !any {
        return;
    }
    let bodies: HashMap<String, Ty> = converted.defs.iter().map(|d| (d.name.clone(), d.ty.clone())).collect();
    for ty in converted.defs.iter_mut().map(|d| &mut d.ty).chain([&mut converted.ty]) {
        ty.visit_mut(&mut |t| {
            let Ty::Intersection(parts) = t else { return };
            let mut product: u64 = 1;
            parts.retain(|part| {
                let size = width(part, &bodies, DEPTH);
                let fits = product.saturating_mul(size) <= PRODUCT || size == 1;
                if fits {
                    product = product.saturating_mul(size);
                }
                fits
            });
            match parts.len() {
                0 => *t = Ty::Unknown,
                1 => *t = parts.remove(0),
                _ => {}
            }
        });
    }
}

/// How many members the type has when it is written out as a union.
fn width(ty: &Ty, bodies: &HashMap<String, Ty>, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    match ty {
        Ty::Union(list) => list.iter().map(|t| width(t, bodies, depth)).fold(0, u64::saturating_add),
        Ty::Intersection(list) => list.iter().map(|t| width(t, bodies, depth)).fold(1, u64::saturating_mul),
        Ty::Ref(name) => bodies.get(name).map_or(1, |t| width(t, bodies, depth - 1)),
        Ty::Boolean => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert::convert;
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_product_that_tsc_would_refuse_is_given_up() {
        let branches = |prefix: &str| -> Vec<Value> {
            (0..400).map(|i| json!({"properties": {format!("{prefix}{i}"): {"type": "string"}}})).collect()
        };
        let doc = json!({"allOf": [{"oneOf": branches("a")}, {"$ref": "#/$defs/b"}], "properties": {"x": {"$ref": "#/$defs/b"}},
            "$defs": {"b": {"oneOf": branches("b")}}});
        let out = convert(&doc, "Root");
        let mut widest = 0;
        out.ty.visit(&mut |t| {
            if let Ty::Intersection(parts) = t {
                widest = widest.max(parts.len());
            }
        });
        assert_eq!(widest, 2, "the object and the first union stay");
    }
}
