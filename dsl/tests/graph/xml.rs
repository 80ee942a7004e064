//! A check that a text is well-formed XML, as far as our pictures use it.
//!
//! Leaves documents types, comments, CDATA and processing instructions out: pictures have none, so they are refused.

/// Checks elements, attributes and character references.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut roots = 0;
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        let Some(tag) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            if open.is_empty() {
                return Err(format!("text outside the root: {rest:.60}"));
            }
            characters(&rest[..end], "")?;
            rest = &rest[end..];
            continue;
        };
        let end = tag.find('>').ok_or_else(|| format!("open tag: {rest:.60}"))?;
        let (inner, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = inner.strip_prefix('/') {
            let expected = open.pop();
            if expected != Some(name) {
                return Err(format!("</{name}> closes {expected:?}"));
            }
            continue;
        }
        let (inner, closed) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
        let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
        is_name(name)?;
        self::attributes(attributes)?;
        roots += usize::from(open.is_empty());
        if !closed {
            open.push(name);
        }
    }
    if open.is_empty() && roots == 1 { Ok(()) } else { Err(format!("{roots} roots, still open: {open:?}")) }
}

fn is_name(name: &str) -> Result<(), String> {
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':');
    if fits { Ok(()) } else { Err(format!("not a name: {name:?}")) }
}

fn attributes(text: &str) -> Result<(), String> {
    let mut seen = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").ok_or_else(|| format!("no value: {rest:?}"))?;
        is_name(name)?;
        if seen.contains(&name) {
            return Err(format!("{name} twice"));
        }
        seen.push(name);
        let (value, after) = value.split_once('"').ok_or_else(|| format!("open value: {rest:?}"))?;
        characters(value, "<")?;
        rest = after.trim_start();
    }
    Ok(())
}

fn characters(text: &str, refused: &str) -> Result<(), String> {
    let allowed = |c: char| {
        matches!(u32::from(c), 9 | 10 | 13 | 0x20..=0xD7FF | 0xE000..=0xFFFD | 0x10000..)
            && !refused.contains(c)
    };
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        return Err(format!("character {c:?}"));
    }
    for piece in text.split('&').skip(1) {
        let name = piece.split_once(';').map(|(name, _)| name);
        if !matches!(name, Some("amp" | "lt" | "gt" | "quot" | "#39")) {
            return Err(format!("reference &{piece:.20}"));
        }
    }
    if text.contains("]]>") { Err("]]> in text".to_owned()) } else { Ok(()) }
}
